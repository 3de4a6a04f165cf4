package main

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// abortOnPanic has a process that serves others end by SIGABRT where a goroutine panics, with what all of them did. By itself
// Go ends it with exit code 2, which says that what was typed cannot be: no supervisor would start it again.
//
// No core is written: it would be as large as the memory, with every secret in it. Where core_pattern is a program the kernel gives it a core
// at a limit of zero too, and at a limit of 1 none (core(5)).
func abortOnPanic() {
	debug.SetTraceback("crash")
	if unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1}) != nil { // the limit that it was given is zero
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	}
}
