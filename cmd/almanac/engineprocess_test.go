package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// engine is the process of the engine: the child of an up.
func (s *daemon) engine() (pid int) {
	s.b.t.Helper()
	embeddedtest.Eventually(s.b.t, maxWait, func() error {
		all, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return err
		}
		for _, file := range all {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			_, rest, _ := strings.Cut(string(text), ") ")
			if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(s.cmd.Process.Pid) {
				pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))
				return err
			}
		}
		return errors.New("the up has no engine")
	})
	return pid
}
