"""A worker that speaks the wire without torch: its times come from a cost curve, its misfortunes from the plan's model arguments.

Run as a program: `python torchless_worker.py`. Model arguments (all text):
  fixed_ms, per_item_ms   the cost curve (1.0 and 0.1)
  alone_from              sizes from this on take three times as long in a process that made no other size ready
  oom_from                every size from this on is out of memory
  error_from              every size from this on raises the same shape error
  die_at, die_with        at this size the process kills itself with this signal number (9), or exits with `exit_with`
  break_at                at this size the device breaks: the failure is told, and the process leaves
  hang_at                 at this size a block takes forever, deaf to the stop message
  deaf                    "term": SIGTERM is ignored too
  load_error              loading fails with this text
  memory_per_item_mb      what Prepared tells
  log                     a file that gets a line per start and per command
"""

from __future__ import annotations

import os
import queue
import random
import signal
import sys
import threading
import time
from pathlib import Path

from engine import wire
from engine.plan import Plan
from engine.results import Block, Failure, Prepared


class Worker:
    def __init__(self) -> None:
        self.plan = Plan()
        self.inbox: queue.Queue[wire.Command] = queue.Queue()
        self.first = False
        self.sizes: set[int] = set()
        self.random = random.Random(7)
        self.out = os.dup(1)
        os.dup2(2, 1)

    def arg(self, name: str, otherwise: str = "") -> str:
        return self.plan.model_args.get(name, otherwise)

    def number(self, name: str, otherwise: float) -> float:
        return float(self.arg(name, str(otherwise)))

    def send(self, reply: wire.Reply) -> None:
        os.write(self.out, wire.encode(reply))

    def log(self, text: str) -> None:
        if path := self.arg("log"):
            with Path(path).open("a") as file:
                file.write(f"{os.getpid()} {text}\n")

    def read(self) -> None:
        for line in sys.stdin.buffer:
            self.inbox.put(wire.decode_command(line))
        os._exit(0)

    def serve(self) -> None:
        threading.Thread(target=self.read, daemon=True).start()
        self.send(wire.Hello(os.getpid()))
        while True:
            command = self.inbox.get()
            match command:
                case wire.Load(plan):
                    self.plan = plan
                    self.log("load")
                    if path := self.arg("only_second"):  # the first process with this path meets no mishap
                        self.first = not Path(path).exists()
                        Path(path).touch()
                    self.send(self.loaded())
                case wire.Prepare(size):
                    self.log(f"prepare {size}")
                    self.sizes.add(size)
                    reply = self.trouble(size) or self.prepared(size)
                    self.send(reply)
                    if isinstance(reply, wire.FailedReply) and reply.leaving:
                        os._exit(0)
                case wire.Measure(size, number):
                    self.mishap(size, number)
                    self.send(self.trouble(size) or self.block(size, number))
                case wire.Lap():
                    self.lap(command)
                case wire.CompareLaps():
                    self.send(wire.Agreement(True, "all classes the same"))
                case wire.Release(batch_size=size):
                    self.log(f"release {size}")
                    self.send(wire.Done())
                case wire.Stop():
                    self.send(wire.Stopped())
                case wire.Bye():
                    os._exit(0)

    def loaded(self) -> wire.Reply:
        if self.arg("deaf") == "term":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if text := self.arg("load_error"):
            return wire.FailedReply(
                Failure("error", "the model cannot be loaded", text), remedy="Fix it.", usage=True
            )
        return wire.ReadyReply(
            "scripted", 10, "1x2x2 float32", "images/s", 0.01, "", 1, "cpu", "wall time", 0.001
        )

    def trouble(self, size: int) -> wire.FailedReply | None:
        if size == self.number("break_at", -1):
            return wire.FailedReply(Failure("error", "AcceleratorError", "device-side assert"), leaving=True)
        if size >= self.number("oom_from", 1e18):
            return wire.FailedReply(Failure("oom", "out of memory", f"tried to allocate {size} GB"))
        if size >= self.number("error_from", 1e18):
            return wire.FailedReply(
                Failure("error", "RuntimeError", "mat1 and mat2 shapes cannot be multiplied", "net.py:7")
            )
        return None

    def mishap(self, size: int, number: int = 0) -> None:
        if number < self.number("from_round", 0) or self.first:
            return
        if size == self.number("die_at", -1):
            print("about to end", file=sys.stderr, flush=True)
            if code := self.arg("exit_with"):
                os._exit(int(code))
            os.kill(os.getpid(), int(self.arg("die_with", "9")))
        if size == self.number("hang_at", -1):
            self.log("hanging")
            while True:
                time.sleep(60)

    def call_ms(self, size: int) -> float:
        mean = self.number("fixed_ms", 1.0) + self.number("per_item_ms", 0.1) * size
        alone = size >= self.number("alone_from", 1e18) and len(self.sizes) == 1
        return (3.0 if alone else 1.0) * mean * self.random.uniform(0.99, 1.01)

    def prepared(self, size: int) -> wire.Reply:
        memory = self.number("memory_fixed_mb", 0.0) + self.number("memory_per_item_mb", 0.01) * size
        calls = max(1, round(50 / self.call_ms(size)))
        return wire.PreparedReply(
            Prepared(size, self.call_ms(size) * 3, calls, 2, 0.2, memory_mb=memory, effective_batch_size=size)
        )

    def block(self, size: int, number: int) -> wire.Reply:
        calls = max(1, round(50 / self.call_ms(size)))
        times = tuple(self.call_ms(size) for _ in range(calls))
        return wire.BlockReply(
            Block(size, calls, sum(times) / 1000, times, calls * size, faults=0, round=number)
        )

    def lap(self, lap: wire.Lap) -> None:
        if trouble := self.trouble(lap.batch_size):
            self.send(trouble)
            return
        self.mishap(lap.batch_size, lap.round)
        calls = -(-lap.images // lap.batch_size)
        times = tuple(self.call_ms(lap.batch_size) for _ in range(calls))
        self.send(wire.RaceStep(lap.lane, lap.images // 2, lap.images))
        self.send(wire.LapDone(lap.lane, lap.round, lap.batch_size, sum(times), times))


if __name__ == "__main__":
    Worker().serve()
