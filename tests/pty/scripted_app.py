"""The real interface with a scripted session, as a program: `python -m tests.pty.scripted_app whole|endless [--plain]`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence

from engine import events
from engine.plan import Plan
from engine.results import Measurement
from tests.ui import scripted_session as scripted


class EndlessSession(scripted.ScriptedSession):
    """Measures for ever, twenty blocks a second, figures that move a little: what a long sweep sends."""

    def run(
        self,
        plan: Plan,
        *,
        prior: Sequence[Measurement] = (),
        resumes: str | None = None,
        sink: Callable[[events.AnyEvent], object] | None = None,
    ) -> Iterator[events.AnyEvent]:
        self._cancelled.clear()
        run = "endless1"
        yield self._told(sink, scripted.started(plan, run))
        yield self._told(sink, scripted.ready(run))
        count = 0
        while not self._cancelled.is_set():
            if not self._going.is_set():
                yield self._told(sink, scripted.status(run, "paused"))
                while not self._going.wait(0.05) and not self._cancelled.is_set():
                    pass
                yield self._told(sink, scripted.status(run, "measuring"))
            size = plan.batch_sizes[count % len(plan.batch_sizes)]
            yield self._told(sink, scripted.block(run, size, count))
            rate = scripted.figures(size)[0] * (1.0 + 0.001 * (count % 7))
            state = "stable" if count >= 20 and size == 1 else "measuring"
            yield self._told(sink, scripted.point(run, size, state, throughput=rate, blocks=6 + count // 5))
            if count % 20 == 0:
                yield self._told(sink, scripted.verdict(run))
            count += 1
            time.sleep(0.05)
        yield self._told(sink, events.RunFinished(run=run, t=9.0, reason="cancelled", elapsed_s=9.0))


def main(script: str, options: Sequence[str]) -> int:
    """Run the interface until it is left."""
    from tui.start import run

    def session() -> scripted.ScriptedSession:
        if script == "endless":
            return EndlessSession()
        return scripted.ScriptedSession(scripted.whole_sweep, scripted.whole_sweep)

    return run(
        Plan(),
        session_factory=session,
        save="--save" in options,
        plain="--plain" in options,
        mouse="--no-mouse" not in options,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
