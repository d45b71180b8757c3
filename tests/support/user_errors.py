"""Errors that users see: the first line of the message names theirs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import pytest


def raises_at_user_line(error: type[BaseException], call: Callable[[], Any], *parts: str) -> str:
    """The message; its first line names a line of the file that this is called in, and all parts are in it."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    file = os.path.basename(sys._getframe(1).f_code.co_filename)
    assert f"{file}:" in message.splitlines()[0], message
    for part in parts:
        assert part in message, message
    return message
