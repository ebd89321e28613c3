"""Trials of the model on one GPU: label, check and tune the kernels, time steps, train."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
import time
from pathlib import Path

START = time.time()


def say(*words):
    print(f"[{time.time() - START:6.1f}]", *words, flush=True)


VALIDATION = [f"val-{way}-{what}" for way in ("two-way", "one-way") for what in ("20", "50", "100", "scenes")]
VALIDATION.append("val-one-way-large")
TRAINING = [f"train-{way}-{size}" for size in "sml" for way in ("two-way", "one-way")]
WEIGHTS = (3, 3, 4, 4, 3, 3)
#: Iterations of ruin and recreate for each task.
EFFORT = {"val": 1000, "train": 120}

VARIANTS = {
    "today": {},
    "bias+gat": {"bias": "near"},
    "bias": {"bias": "near", "graph_attention": False},
    "linear": {"bias": "linear", "graph_attention": False},
    "pointer": {"bias": "near", "graph_attention": False, "pointer_bias": True},
    "bias9": {"bias": "near", "graph_attention": False, "layers": 9},
    "bias4": {"bias": "near", "graph_attention": False, "layers": 4},
    "today9": {"layers": 9},
    "pointer9": {"bias": "near", "graph_attention": False, "pointer_bias": True, "layers": 9},
    "wide": {"bias": "near", "graph_attention": False, "width": 192, "heads": 12, "feed_forward": 768},
    "heads4": {"bias": "near", "graph_attention": False, "heads": 4},
    "ff1024": {"bias": "near", "graph_attention": False, "feed_forward": 1024},
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
            out = biased.biased_attention(parts, visible, heads, biased.Pairs(incoming, biased.pack(incoming)), slopes, near)
            pull = torch.randn_like(out)
            out.backward(pull)
            exact, sharp = parts.detach().double().requires_grad_(), slopes.detach().double().requires_grad_()
            wanted = biased.biased_attention(exact, visible, heads, biased.Pairs(incoming.double(), None), sharp, near)
            wanted.backward(pull.double())
            say("kernel", arcs, heads, dim, near, f"out {far(out, wanted):.5f} parts {far(parts.grad, exact.grad):.5f}",
                f"slopes {far(slopes.grad, sharp.grad):.5f}")

    compare()
    chosen = {"forward": {}, "backward": {}}
    for arcs in (48, 88, 128, 168, 208, 248):
        rows = 250_000 // arcs
        parts, incoming, visible, slopes = inputs(rows, arcs, 8, 16)
        packed = biased.pack(incoming)
        out = plain.short_attention(parts, visible, 8)
        pull = torch.randn_like(out)
        old_forward = do_bench(lambda: plain._attend(parts.detach(), visible, 8), warmup=5, rep=25)
        kept = plain._attend(parts.detach(), visible, 8)
        old_backward = do_bench(lambda: plain._attend_backward(parts.detach(), visible, *kept, pull, 8), warmup=5, rep=25)
        kept = biased._attend(parts.detach(), visible, 8, packed, slopes.detach(), True)
        runs = {
            "forward": (biased.FORWARD_SHAPE, lambda: biased._attend(parts.detach(), visible, 8, packed, slopes.detach(), True)),
            "backward": (biased.BACKWARD_SHAPE, lambda: biased._attend_backward(
                parts.detach(), visible, packed, slopes.detach(), *kept, pull, 8, True)),
        }  # fmt: skip
        warps = (1, 2, 4) if arcs <= 128 else (2, 4, 8)
        line = []
        for kind, (table, work) in runs.items():
            times = {}
            for tile in (16, 32, 64):
                for count in warps:
                    table.clear()
                    table[256] = (tile, count, 1 if kind == "backward" else 2)
                    if tile * arcs / (32 * count) > 160:
                        continue  # would not fit into registers
                    try:
                        times[table[256]] = do_bench(work, warmup=3, rep=12)
                    except Exception as error:  # too large a shape
                        say("failed", table, str(error)[:80])
            best = min(times, key=times.get)
            chosen[kind][arcs] = best
            line.append(f"{kind} {best} {times[best]:.3f} ms")
        say(f"arcs {arcs}: plain {old_forward:.3f} + {old_backward:.3f} ms;", "; ".join(line))
        Path(args.out, "shapes.json").write_text(json.dumps(chosen))
    use_shapes(args)
    compare()


def use_shapes(args):
    from arcfleet.neural.kernels import biased_attention as biased

    for folder in (args.out, args.data):
        path = Path(folder, "shapes.json")
        if path.exists():
            found = json.loads(path.read_text())
            for table, kind in ((biased.FORWARD_SHAPE, "forward"), (biased.BACKWARD_SHAPE, "backward")):
                table.clear()
                # Evaluation has other lengths than training: those up to a tuned one take its shape.
                table.update({int(n): tuple(shape) for n, shape in found[kind].items()})
                table[256] = table[max(table)]
            return


class Bench:
    def __init__(self, args, device, *, training=True):
        from arcfleet.neural.train.data import open_labelled

        self.args, self.device = args, device
        use_shapes(args)
        self.validation = [open_labelled(args.data / f"{name}.npz", device) for name in VALIDATION]
        say("validation sets ready")
        self.data = [open_labelled(args.data / f"{name}.npz", device) for name in TRAINING] if training else []
        say("data ready")
        self.models = []

    def trainer(self, variant, seed, minutes, tokens, folder, *, resume=False, rate=7e-4, **more):
        from arcfleet.neural.train.config import config_from, PretrainConfig, settings_of
        from arcfleet.neural.train.pretrain import PretrainTrainer
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
        return PretrainTrainer(config, model, self.data, [], RunFolder(folder, identity, resume=resume), 1, None)

    def step_times(self, variant, tokens):
        """Compile all kernels, and time a step of each length."""
        import torch

        from arcfleet.neural.train.steps import imitation_loss

        trainer = self.trainer(variant, 999, 1.0, tokens, "/tmp/warm-run")
        cuda = self.device.type == "cuda"
        times = {}
        for number in (4, 5, 0, 1, 2, 3) if cuda else (0,):
            for bucket in trainer.buckets_of(number):
                for _ in range(2):
                    trainer.learner.update(imitation_loss(trainer.form, trainer.draw(number, bucket), True), 1e-5)
                if number != 4:
                    continue
                spent = []
                for _ in range(5):
                    if cuda:
                        torch.cuda.synchronize()
                    begun = time.perf_counter()
                    trainer.learner.update(imitation_loss(trainer.form, trainer.draw(number, bucket), True), 1e-5)
                    if cuda:
                        torch.cuda.synchronize()
                    spent.append(1000 * (time.perf_counter() - begun))
                times[bucket.length] = round(sorted(spent)[2], 2)
        trainer.folder.close()
        return times

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
        self.models.append((path, name))
        with tarfile.open(Path(self.args.out, "models.tar"), "w") as tar:
            for file, each in self.models:
                tar.add(file, each)


def time_steps(args):
    bench = Bench(args, place())
    for variant in args.variants.split(","):
        times = bench.step_times(variant, args.tokens)
        say("step", variant, times)
        with Path(args.out, "steps.jsonl").open("a") as file:
            file.write(json.dumps({"variant": variant, "ms": times}) + "\n")
    if args.trials:
        trials(args, bench)


def trials(args, bench=None):
    """Train and evaluate each of `variant:seed` in turn, until the time is over."""
    from arcfleet.neural.checkpoint import load_model, save_model

    bench = bench or Bench(args, place())
    if args.shipped:
        import arcfleet
        from arcfleet.neural.decoding import decoding_model

        model, _ = load_model(Path(arcfleet.__file__).parent / "neural/weights/daam.safetensors")
        bench.record({"name": "shipped", "gaps": bench.gaps(decoding_model(model.to(bench.device)))})
    for each in args.trials.split(","):
        variant, seed, *rest = each.split(":")
        minutes = float(rest[0]) if rest else args.minutes
        if time.time() - START + 60 * minutes + 12 > args.deadline:
            say("no time left for", each)
            break
        times = bench.step_times(variant, args.tokens)
        folder = Path("/tmp/runs") / f"{variant}-{seed}"
        resumed = args.resume and Path(args.resume).exists()
        if resumed:
            shutil.copytree(args.resume, folder)
        more = {"checkpoint_minutes": 2.0} if minutes > 2.5 else {}
        trainer = bench.trainer(variant, int(seed), minutes, args.tokens, folder, resume=resumed, rate=args.rate, **more)
        trained = trainer.run(resume=bool(resumed))
        gaps = bench.gaps(trainer.learner.for_decoding().eval())
        line = {"name": variant, "seed": int(seed), "minutes": minutes, "tokens": args.tokens, "rate": args.rate,
                "steps": trained.steps, "seconds": trained.seconds, "step_ms": times, "gaps": gaps}  # fmt: skip
        bench.record(line)
        save_model(trainer.learner.ema, Path(f"/tmp/runs/{variant}-{seed}.safetensors"), {"trial": each})
        bench.keep(f"/tmp/runs/{variant}-{seed}.safetensors", f"{variant}-{seed}.safetensors")
        slopes = [p.detach() for n, p in trainer.learner.ema.named_parameters() if n.endswith("slopes")]
        if slopes:
            say("slopes of the first and last layer", slopes[0].cpu().round(decimals=1).tolist(),
                slopes[-1].cpu().round(decimals=1).tolist())  # fmt: skip


def place():
    import torch

    torch.set_num_threads(1)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("label", "check", "steps", "trials"))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", default="/tmp")
    parser.add_argument("--workers", type=int, default=14)
    parser.add_argument("--threads", type=int, default=12)
    parser.add_argument("--effort", type=int, default=0)
    parser.add_argument("--tokens", type=int, default=200_000)
    parser.add_argument("--minutes", type=float, default=1.5)
    parser.add_argument("--rate", type=float, default=7e-4)
    parser.add_argument("--deadline", type=float, default=1e9)
    parser.add_argument("--variants", default="today,bias+gat,bias,linear,pointer")
    parser.add_argument("--trials", default="")
    parser.add_argument("--shipped", action="store_true")
    parser.add_argument("--resume", default="")
    given = parser.parse_args()
    sys.setrecursionlimit(10_000)
    {"label": label, "check": check, "steps": time_steps, "trials": trials}[given.what](given)
