"""Trials of the model on one GPU: label, check and tune the kernels, time steps, train."""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import sys
import time
from pathlib import Path

START = time.time()
#: Without CUDA graphs.
EAGER = "--eager" in sys.argv


def say(*words):
    print(f"[{time.time() - START:6.1f}]", *words, flush=True)


VALIDATION = [f"val-{way}-{what}" for way in ("two-way", "one-way") for what in ("20", "50", "100", "scenes")]
VALIDATION.append("val-one-way-large")
TRAINING = [f"train-{way}-{size}" for size in "sml" for way in ("two-way", "one-way")]
WEIGHTS = (3, 3, 4, 4, 3, 3)
#: Iterations of ruin and recreate for each task.
EFFORT = {"val": 1000, "train": 120}

NO_GAT = {"bias": "near", "graph_attention": False}
VARIANTS = {
    "today": {},
    "today9": {"layers": 9},
    "bias+gat": {"bias": "near"},
    "bias": NO_GAT,
    "linear": {**NO_GAT, "bias": "linear"},
    "fixed": {**NO_GAT, "bias": "linear-fixed"},
    "fast": {**NO_GAT, "bias": "near-fast"},
    "linear-fast": {**NO_GAT, "bias": "linear-fast"},
    "pointer": {**NO_GAT, "pointer_bias": True},
    "fast+pointer": {**NO_GAT, "bias": "near-fast", "pointer_bias": True},
    "fast+pointer9": {**NO_GAT, "bias": "near-fast", "pointer_bias": True, "layers": 9},
    "bias9": {**NO_GAT, "layers": 9},
    "bias4": {**NO_GAT, "layers": 4},
    "fast9": {**NO_GAT, "bias": "near-fast", "layers": 9},
    "wide": {**NO_GAT, "width": 192, "heads": 12, "feed_forward": 768},
    "heads4": {**NO_GAT, "heads": 4},
    "fast+gat": {"bias": "near-fast"},
    "fast-wide": {**NO_GAT, "bias": "near-fast", "width": 192, "heads": 12, "feed_forward": 768},
    "fast-heads4": {**NO_GAT, "bias": "near-fast", "heads": 4},
}


def label(args):
    from arcfleet.datasets.dataset import Dataset
    from arcfleet.datasets.labels import label_dataset

    for name in [*VALIDATION, *TRAINING]:
        dataset = Dataset.open(args.data / f"{name}.npz")
        tasks = int((dataset.arrays["demand"] > 0).sum()) / len(dataset)
        started = time.time()
        effort = args.effort or EFFORT[name.split("-")[0]]
        label_dataset(dataset, iterations=int(effort * round(tasks)), seed=1, workers=args.workers)
        say("labelled", name, len(dataset), f"{tasks:.1f} tasks {time.time() - started:.1f} s")


def check(args):
    """Compare the kernels with float64, and choose their shapes."""
    import torch
    from triton.testing import do_bench

    from arcfleet.neural.kernels import attention as plain
    from arcfleet.neural.kernels import biased_attention as biased

    def inputs(rows, arcs, heads, dim):
        parts = torch.randn(rows, arcs, 3 * heads * dim, device="cuda").bfloat16().requires_grad_()
        incoming = (2 * torch.rand(rows, arcs, arcs, device="cuda")).bfloat16()
        visible = torch.rand(rows, arcs, device="cuda") < 0.7
        visible[:, 0] = True
        slopes = torch.randn(heads, 4, device="cuda", requires_grad=True)
        return parts, incoming, visible, slopes

    def far(a, b):
        return ((a.double() - b).norm() / b.norm()).item()

    def compare():
        for arcs, heads, dim, near in ((48, 8, 16, True), (88, 8, 16, False), (128, 4, 32, True), (248, 8, 16, True),
                                       (37, 12, 16, True)):  # fmt: skip
            parts, incoming, visible, slopes = inputs(64, arcs, heads, dim)
            out = biased.biased_attention(parts, visible, heads, biased.Pairs(incoming, biased.pack(incoming)), slopes, near, 1)
            pull = torch.randn_like(out)
            out.backward(pull)
            exact, sharp = parts.detach().double().requires_grad_(), slopes.detach().double().requires_grad_()
            wanted = biased.biased_attention(exact, visible, heads, biased.Pairs(incoming.double(), None), sharp, near)
            wanted.backward(pull.double())
            say("kernel", arcs, heads, dim, near, f"out {far(out, wanted):.5f} parts {far(parts.grad, exact.grad):.5f}",
                f"slopes {far(slopes.grad, sharp.grad):.5f}")

    compare()
    chosen = json.loads((args.data / "shapes.json").read_text())
    for arcs in (88, 168, 248):
        rows = 250_000 // arcs
        parts, incoming, visible, slopes = inputs(rows, arcs, 8, 16)
        parts, slopes, packed = parts.detach(), slopes.detach(), biased.pack(incoming)
        kept = plain._attend(parts, visible, 8)
        pull = torch.randn_like(kept[0])
        old = [do_bench(lambda: plain._attend(parts, visible, 8), warmup=5, rep=20),
               do_bench(lambda: plain._attend_backward(parts, visible, *kept, pull, 8), warmup=5, rep=20)]  # fmt: skip
        say(f"arcs {arcs}: plain {old[0]:.3f} + {old[1]:.3f} ms")
        if arcs == 248:
            times = {}
            for shape in ((16, 2, 2), (32, 2, 2), (16, 4, 2), (32, 4, 2)):
                biased.FORWARD_SHAPE.clear()
                biased.FORWARD_SHAPE[256] = shape
                times[shape] = do_bench(lambda: biased._attend(parts, visible, 8, packed, slopes, True, 1), warmup=3, rep=12)
            chosen["forward"]["256"] = min(times, key=times.get)
            say("forward", {shape: round(ms, 3) for shape, ms in times.items()})
        use = biased.BACKWARD_SHAPE
        kept = biased._attend(parts, visible, 8, packed, slopes, True, 1)

        def backward(near, every):
            return do_bench(lambda: biased._attend_backward(parts, visible, packed, slopes, *kept, pull, 8, near, every),
                            warmup=3, rep=12)  # fmt: skip

        times = {}
        for shape in ((16, 2, 1), (16, 4, 1), (32, 4, 1), (64, 4, 1), (64, 8, 1), (32, 8, 1)):
            use.clear()
            use[256] = shape
            times[shape] = backward(True, 8)
        say("backward, slopes by every 8th row", {shape: round(ms, 3) for shape, ms in times.items()})
        best = min(times, key=times.get)
        use.clear()
        use[256] = best
        for most in {88: (88, 128), 168: (168,), 248: (208, 256)}[arcs]:
            chosen["backward"][str(most)] = best
        found = {(near, every): round(backward(near, every), 3) for near in (True, False) for every in (1, 8, 0)}
        say("backward by (near, every)", found)
        Path(args.out, "shapes.json").write_text(json.dumps(chosen))
    use_shapes(args)
    compare()


def warm(args):
    """Compile the kernels of some heads, beside other work, for all lengths to come."""
    import numpy as np
    import torch

    from arcfleet.datasets.dataset import Dataset
    from arcfleet.neural.kernels import biased_attention as biased

    use_shapes(args)
    heads, dim, near = (int(x) for x in args.heads.split(","))
    lengths = {48, 88, 128, 168, 208, 248}
    for name in VALIDATION:
        arrays = Dataset.open(args.data / f"{name}.npz").arrays
        arcs = np.where(arrays["demand"] > 0, np.where(arrays["one_way"], 1, 2), 0).astype(int)
        starts = np.cumsum(arrays["num_links"].astype(int)) - arrays["num_links"]
        lengths.add(1 + int(np.add.reduceat(arcs, starts).max()))
    for arcs in sorted(x for x in lengths if x <= 256):
        parts = torch.randn(8, arcs, 3 * heads * dim, device="cuda").bfloat16()
        packed = biased.pack(torch.rand(8, arcs, arcs, device="cuda"))
        visible = torch.ones(8, arcs, dtype=torch.bool, device="cuda")
        slopes = torch.randn(heads, 4, device="cuda")
        kept = biased._attend(parts, visible, heads, packed, slopes, bool(near), 8)
        if arcs % 40 == 8:
            biased._attend_backward(parts, visible, packed, slopes, *kept, kept[0], heads, bool(near), 8)
    say("compiled", args.heads, sorted(lengths))


def use_shapes(args):
    from arcfleet.neural.kernels import biased_attention as biased

    for folder in (args.out, args.data):
        path = Path(folder, "shapes.json")
        if path.exists():
            found = json.loads(path.read_text())
            for table, kind in ((biased.FORWARD_SHAPE, "forward"), (biased.BACKWARD_SHAPE, "backward")):
                table.clear()
                # Evaluation has other lengths than training: those up to a tuned one take its shape.
                table.update({n: tuple(shape) for n, shape in sorted((int(n), x) for n, x in found[kind].items())})
                table.setdefault(256, table[max(table)])
            return


def graphed_trainer():
    """Return a trainer whose forward and backward passes are replayed CUDA graphs.

    So the GPU does not wait for the host; a graph for each length and kind of step.
    """
    from dataclasses import fields

    import torch

    from arcfleet.neural.batch import ArcBatch
    from arcfleet.neural.env import State
    from arcfleet.neural.train.pretrain import PretrainTrainer
    from arcfleet.neural.train.steps import imitation_loss

    def tensors(mini):
        return [*(getattr(mini.batch, f.name) for f in fields(ArcBatch)), *mini.state, mini.choice, mini.weight]

    def cloned(mini):
        batch = ArcBatch(**{f.name: getattr(mini.batch, f.name).clone() for f in fields(ArcBatch)})
        return mini._replace(batch=batch, state=State(*(x.clone() for x in mini.state)), choice=mini.choice.clone(),
                             weight=mini.weight.clone())  # fmt: skip

    class Graphed(PretrainTrainer):
        forced = None

        def draw_giant_tour(self, fraction):
            return super().draw_giant_tour(fraction) if self.forced is None else self.forced

        def capture(self):
            cuda = self.device.type == "cuda" and not EAGER
            weights = list(self.learner.working.parameters())
            self.master_grads = []
            for master in self.learner.master.parameters():
                master.grad = torch.zeros_like(master)
                self.master_grads.append(master.grad)
            states = self._host.get_state(), self.generator.get_state()
            pool = torch.cuda.graph_pool_handle() if cuda else None
            side = torch.cuda.Stream() if cuda else None
            self.graphs = {}
            for number in range(len(self.data)):
                for bucket in self.buckets_of(number):
                    for giant in (False, True):
                        if (bucket.length, not giant) in self.graphs:
                            continue
                        self.forced = giant
                        static = cloned(self.draw(number, bucket))

                        def work(static=static):
                            loss = imitation_loss(self.form, static, True)
                            loss.backward()
                            return loss.detach()

                        def clear():
                            for weight in weights:
                                weight.grad = None

                        if cuda:
                            side.wait_stream(torch.cuda.current_stream())
                            with torch.cuda.stream(side):
                                for _ in range(2):
                                    clear()
                                    work()
                            torch.cuda.current_stream().wait_stream(side)
                            clear()
                            graph = torch.cuda.CUDAGraph()
                            with torch.cuda.graph(graph, pool=pool, stream=side):
                                loss = work()
                            grads = [weight.grad for weight in weights]
                            replay = graph.replay
                        else:
                            loss, grads = torch.zeros((), device=self.device), [torch.zeros_like(weight) for weight in weights]

                            def replay(work=work, loss=loss, grads=grads, clear=clear):
                                clear()
                                loss.copy_(work())
                                torch._foreach_copy_(grads, [weight.grad for weight in weights])

                            graph = None
                        assert all(x is not None for x in grads), "a weight without a gradient"
                        self.graphs[bucket.length, not giant] = (graph, replay, static, loss, grads)
            clear()
            self.forced = None
            self._host.set_state(states[0])
            self.generator.set_state(states[1])

        def replay_times(self):
            """Time forward and backward pass of each length, in ms."""
            if self.device.type != "cuda" or EAGER:
                return {}
            found = {}
            for (length, bound), (_, replay, *_) in sorted(self.graphs.items()):
                if bound:
                    marks = [torch.cuda.Event(enable_timing=True) for _ in range(11)]
                    replay()
                    for mark in marks[:-1]:
                        mark.record()
                        replay()
                    marks[-1].record()
                    torch.cuda.synchronize()
                    spent = sorted(a.elapsed_time(b) for a, b in zip(marks, marks[1:], strict=False))
                    found[length] = round(spent[5], 2)
            return found

        def train_step(self, rate):
            number = self.draw_set()
            bucket = self.draw_bucket(number)
            mini = self.draw(number, bucket)
            _, replay, static, loss, grads = self.graphs[bucket.length, mini.capacity_mask]
            for kept, new in zip(tensors(static), tensors(mini), strict=True):
                kept.copy_(new)
            replay()
            learner = self.learner
            torch._foreach_copy_(self.master_grads, grads)
            torch.nn.utils.clip_grad_norm_(learner.master.parameters(), self.config.optimiser.clip_norm)
            for group in learner._optimiser.param_groups:
                group["lr"] = rate
            learner._optimiser.step()
            learner.updates += 1
            learner._copy_weights()
            self.metrics.add(mini.choice.numel(), loss=loss)

    return Graphed


class Bench:
    def __init__(self, args, device, *, training=True):
        from arcfleet.neural.train.data import open_labelled

        self.args, self.device = args, device
        use_shapes(args)
        self.validation = [open_labelled(args.data / f"{name}.npz", device) for name in VALIDATION]
        say("validation sets ready")
        self.data = [open_labelled(args.data / f"{name}.npz", device) for name in TRAINING] if training else []
        say("data ready")

    def trainer(self, variant, seed, minutes, tokens, folder, *, resume=False, rate=7e-4, **more):
        from arcfleet.neural.train.config import config_from, PretrainConfig, settings_of
        from arcfleet.neural.train.run import RunFolder, initial_model

        sizes = {"layers": 6, **VARIANTS[variant]}
        config = config_from(PretrainConfig, {
            "model": sizes, "minutes": minutes, "seed": seed, "tokens": tokens, "weights": list(WEIGHTS),
            "validations": 0, "learning_rate": rate, "checkpoint_minutes": 1e6, "log_steps": 200, **more,
        })  # fmt: skip
        model = initial_model(config, None).to(self.device)
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
        identity = {"phase": "pretrain", "config": settings_of(config)}
        return graphed_trainer()(config, model, self.data, [], RunFolder(folder, identity, resume=resume), 1, None)

    def gaps(self, model):
        from arcfleet.neural.train.loop import validate

        found = {}
        for each in self.validation:
            begun = time.time()
            gaps = validate(model, each, threads=self.args.threads)
            found[each.name] = [round(gaps.greedy, 2), round(gaps.optimised, 2), round(time.time() - begun, 1)]
        return found

    def record(self, line):
        with Path(self.args.out, "results.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")
        short = {name.removeprefix("val-"): gaps[0] for name, gaps in line["gaps"].items()}
        say(line["name"], line.get("seed"), line.get("steps"), f"{line.get('seconds', 0):.1f} s", short,
            "decoding", round(sum(gaps[2] for gaps in line["gaps"].values()), 1), "s")

    def keep(self, path, name):
        if name.split("-0.")[0].split("-1.")[0] in ("fast", "linear-fast", "fast9", "fast-heads4"):
            shutil.copy(path, Path(self.args.out, name))


def trials(args):
    """Train and evaluate each of `variant:seed` in turn, until the time is over."""
    from arcfleet.neural.checkpoint import load_model, save_model

    bench = Bench(args, place())
    if args.shipped:
        import arcfleet
        from arcfleet.neural.decoding import decoding_model

        model, _ = load_model(Path(arcfleet.__file__).parent / "neural/weights/daam.safetensors")
        bench.record({"name": "shipped", "gaps": bench.gaps(decoding_model(model.to(bench.device)))})
    for each in args.trials.split(","):
        variant, seed, *rest = each.split(":")
        minutes = float(rest[0]) if rest else args.minutes
        if time.time() - START + 60 * minutes + args.spare > args.deadline:
            say("no time left for", each)
            break
        folder = Path("/tmp/runs") / f"{variant}-{seed}"
        resumed = args.resume and Path(args.resume).exists()
        if resumed:
            shutil.copytree(args.resume, folder)
        more = {"checkpoint_minutes": 2.0} if minutes > 2.5 else {}
        trainer = bench.trainer(variant, int(seed), minutes, args.tokens, folder, resume=resumed, rate=args.rate, **more)
        trainer.capture()
        times = trainer.replay_times()
        say(each, "graphs ready, forward and backward in ms:", times)
        trained = trainer.run(resume=bool(resumed))
        gaps = bench.gaps(trainer.learner.for_decoding().eval())
        line = {"name": variant, "seed": int(seed), "minutes": minutes, "tokens": args.tokens, "rate": args.rate,
                "steps": trained.steps, "seconds": trained.seconds, "step_ms": times, "gaps": gaps}  # fmt: skip
        bench.record(line)
        if minutes > 2.5:
            for old in Path(args.out).glob("checkpoint.part*"):
                old.unlink()
            data = (folder / "checkpoint.safetensors").read_bytes()
            for part in range(0, len(data), 15 << 20):
                Path(args.out, f"checkpoint.part{part >> 20:03d}").write_bytes(data[part : part + (15 << 20)])
        save_model(trainer.learner.ema, Path(f"/tmp/runs/{variant}-{seed}.safetensors"), {"trial": each}, dtype="float16")
        trainer.graphs.clear()
        gc.collect()
        bench.keep(f"/tmp/runs/{variant}-{seed}.safetensors", f"{variant}-{seed}.safetensors")
        slopes = [p.detach() for n, p in trainer.learner.ema.named_parameters() if n.endswith("slopes")]
        if slopes:
            say("slopes of the first and last layer", slopes[0].cpu().round(decimals=2).flatten().tolist(),
                slopes[-1].cpu().round(decimals=2).flatten().tolist())  # fmt: skip


def place():
    import torch

    torch.set_num_threads(1)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("label", "check", "warm", "trials"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", default="/tmp")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--threads", type=int, default=12)
    parser.add_argument("--effort", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--minutes", type=float, default=1.5)
    parser.add_argument("--rate", type=float, default=7e-4)
    parser.add_argument("--deadline", type=float, default=1e9)
    parser.add_argument("--spare", type=float, default=22.0)
    parser.add_argument("--trials", default="")
    parser.add_argument("--shipped", action="store_true")
    parser.add_argument("--heads", default="8,16,1")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--resume", default="")
    given = parser.parse_args()
    sys.setrecursionlimit(10_000)
    {"label": label, "check": check, "warm": warm, "trials": trials}[given.what](given)
