"""From exceptions to exit codes: 0 done, 1 did not converge, 2 bad input. No traceback.

When nobody reads on, as after ``| head``, the command ends in silence, code 141 as in shells.

Ctrl-C while something is solved stops with what is known so far, code 1; before, or in the user's
own code, there is nothing to print, and the code is 130.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

import mdpcloud as mc
from mdpcloud.plugins import mistake_in_plugin

__all__ = ["exit_codes", "say"]

NOT_CONVERGED = 1
BAD_INPUT = 2
INTERRUPTED = 130  # as shells have it
UNREAD = 141


def say(message: str) -> None:
    """Print a message beside the results, on standard error."""
    typer.echo(message, err=True)


@contextmanager
def exit_codes() -> Iterator[None]:
    """Turn the package's exceptions, and those of the user's own code, into messages and codes."""
    try:
        yield
    except typer.Exit:
        raise
    except BrokenPipeError:
        _leave_output()
        raise typer.Exit(UNREAD) from None
    except mc.SolveError as error:
        plain = isinstance(error, mc.InfeasibleError) or "did not converge" in str(error)
        say(str(error) if plain else f"did not converge: {error}")
        for line in _so_far(error.partial):
            say(line)
        raise typer.Exit(NOT_CONVERGED) from error
    except mc.MdpcloudError as error:
        say(f"error: {error}")
        raise typer.Exit(BAD_INPUT) from error
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        say(f"error: {place}{error.strerror or error}")
        raise typer.Exit(BAD_INPUT) from error
    except MemoryError as error:
        say("error: the model does not fit into memory; set smaller caps in [solve]")
        raise typer.Exit(BAD_INPUT) from error
    except KeyboardInterrupt as error:
        say("interrupted before there was a result")
        raise typer.Exit(INTERRUPTED) from error
    except Exception as error:
        if _was_interrupted(error):
            say("interrupted before there was a result")
            raise typer.Exit(INTERRUPTED) from error
        mistake = mistake_in_plugin(error)
        if mistake is None:
            raise
        say(f"error: {mistake}")
        raise typer.Exit(BAD_INPUT) from error


def _leave_output() -> None:
    """Let what is still to be printed, at the end of the process at the latest, go nowhere."""
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _so_far(partial: object) -> Iterator[str]:
    """Lines on a partial result: its bounds, iterations and time, as far as it has them."""
    bounds = getattr(partial, "bounds", None)
    if bounds is not None:
        from mdpcloud.cli.tables import ends

        lower, upper = ends(bounds)
        yield f"  bounds so far: {lower:.10g} to {upper:.10g}"
    iterations, elapsed = getattr(partial, "iterations", None), getattr(partial, "elapsed", None)
    if iterations is not None and elapsed is not None:
        yield f"  after {iterations} iterations and {elapsed:.1f} s"


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether an interrupt was taken for something else, as numba does while it compiles."""
    if error is None:
        return False
    lost = isinstance(error, RuntimeError) and "no compiled object" in str(error)
    if lost or isinstance(error, KeyboardInterrupt):
        return True
    return _was_interrupted(error.__cause__ or error.__context__)
