"""Ctrl-C that is not lost."""

import signal
import sys
import threading
import time
from _thread import interrupt_main, start_new_thread

_AGAIN_S = 0.05


def repeat_dropped_interrupts() -> None:
    """Has Ctrl-C come again where Python dropped it.

    What a finalizer or a weak reference's callback raises goes nowhere, a ``KeyboardInterrupt``
    that happens to arrive there as well; a command that waits for Ctrl-C would go on for ever.
    """
    ordinary = sys.unraisablehook

    def hook(dropped: "sys.UnraisableHookArgs", /) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            ordinary(dropped)
        elif not sys.is_finalizing():
            start_new_thread(_interrupt, ())  # takes no lock that may be held here

    sys.unraisablehook = hook


def _interrupt() -> None:
    time.sleep(_AGAIN_S)  # the finalizer has ended by then
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)  # ends a wait of the main thread, too
    else:
        interrupt_main()
