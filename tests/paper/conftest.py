from tests.neural.train.conftest import folder as folder
