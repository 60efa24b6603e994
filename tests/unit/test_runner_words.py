"""Which line is shown of a measuring process that ended: the one that says most."""

from __future__ import annotations

import sysconfig

from engine.runner import last_words

STDLIB = sysconfig.get_path("stdlib")


def test_the_last_line_is_shown() -> None:
    assert last_words(("starting", "fatal: no license")) == "fatal: no license"


def test_of_a_crash_the_users_line_is_shown_not_the_list_of_modules() -> None:
    lines = (
        "starting",
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x00007f (most recent call first):",
        f'  File "{STDLIB}/ctypes/__init__.py", line 519 in string_at',
        '  File "/home/me/net.py", line 94 in forward',
        f'  File "{STDLIB}/site-packages/torch/nn/modules/module.py", line 1 in _call_impl',
        "",
        "Extension modules: numpy, torch._C (total: 2)",
    )
    assert (
        last_words(lines)
        == 'Fatal Python error: Segmentation fault at File "/home/me/net.py", line 94 in forward'
    )


def test_a_crash_outside_the_users_code_is_shown_without_a_place() -> None:
    assert (
        last_words(("Fatal Python error: Aborted", "Extension modules: numpy"))
        == "Fatal Python error: Aborted"
    )
