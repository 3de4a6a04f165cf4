package main

import (
	"os"
	"os/signal"
	"syscall"
)

// outlive lets a process that serves others outlive the terminal or pipe that it was started on.
// SIGHUP, by which a terminal says that it was closed and a supervisor that settings changed, reads
// them again. Standard output and error may be closed: without a receiver of SIGPIPE the first
// line that is written there ends the process. The verbs that end by themselves end by both.
//
// SIGPIPE is received and not ignored: an ignored signal is ignored by child processes too.
func outlive(reload func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		for s := range signals {
			if s == syscall.SIGHUP {
				reload()
			}
		}
	}()
}
