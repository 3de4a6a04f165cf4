package main

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// abortOnPanic has a process that serves others end by SIGABRT where a goroutine panics, with what all of them did. By itself
// Go ends it with exit code 2, which says that what was typed cannot be: no supervisor would start it again.
//
// No core is written: it would be as large as the memory, with every secret in it.
func abortOnPanic() {
	debug.SetTraceback("crash")
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // lowering it is always allowed
}
