"""One training at a time writes a run's folder."""

import os
from contextlib import suppress
from pathlib import Path

from workbench.settings.config import ConfigError

try:
    import fcntl
except ImportError:  # there is no such lock on Windows; two trainings there are not told apart
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class RunLock:
    """The right to write a run's folder, held by the operating system until the process ends.

    A process that is killed loses it, so that no lock is ever left behind. Where the file system
    keeps no locks, nothing is guarded.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self.folder = folder
        self.descriptor: int | None = None

    def take(self) -> None:
        """Take the lock.

        Raises:
            ConfigError: Another training holds it.
        """
        while fcntl is not None and self.descriptor is None:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise ConfigError(f"{self.folder} cannot be written ({error.strerror})") from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
                os.close(descriptor)
                raise ConfigError(
                    f"another training writes {self.folder} (process {holder}); wait for it, stop "
                    "it, or choose another --out"
                ) from None
            except OSError:  # a file system without locks
                os.close(descriptor)
                return
            if not self._is_current(descriptor):  # its holder took it away while we waited
                os.close(descriptor)
                continue
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            self.descriptor = descriptor

    def drop(self) -> None:
        """Give the lock back, if it was taken."""
        if self.descriptor is None:
            return
        with suppress(OSError):
            self.path.unlink()
        os.close(self.descriptor)
        self.descriptor = None

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False
