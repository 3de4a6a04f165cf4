package main

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/query"
)

// reading reads the flags of a command and keeps the first error, so that a verb reads all it
// needs and looks at err once.
type reading struct {
	flags *cobra.Command
	err   error
}

// pinTimes fixes the moment from which a command reads times, and leaves in --cursor what its list
// understands. It is that of the first page where --cursor is of a later one.
func pinTimes(cmd *cobra.Command) {
	if cmd.Annotations[timesRead] != "" {
		return // one verb runs another's code
	}
	cursor, read := "", time.Now()
	if flag := cmd.Flags().Lookup("cursor"); flag != nil && flag.Value.String() != "" {
		cursor, read = query.UnpinCursor(flag.Value.String(), read)
		_ = flag.Value.Set(cursor)
	}
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[timesRead] = strconv.FormatInt(read.UnixNano(), 10)
}

// timesRead is the annotation of a command with that moment, unix ns.
const timesRead = "almanac_times_read"

// timesOf is that moment.
func timesOf(cmd *cobra.Command) time.Time {
	if ns, err := strconv.ParseInt(cmd.Annotations[timesRead], 10, 64); err == nil {
		return time.Unix(0, ns)
	}
	return time.Now()
}

// nextPage returns the cursor of the next page as users get it.
func nextPage(cmd *cobra.Command, cursor string) string {
	return query.PinCursor(cursor, timesOf(cmd))
}

// flag is a flag's value as text, whatever its type.
func (f *reading) flag(name string) string { return f.flags.Flags().Lookup(name).Value.String() }

// fail keeps an error of a flag, unless there was one.
func (f *reading) fail(name string, err error) {
	if err != nil && f.err == nil {
		f.err = usageError{fmt.Errorf("--%s: %w", name, err)}
	}
}

// regex reads a regular expression, nil when there is none.
func (f *reading) regex(name string) *regexp.Regexp {
	text := f.flag(name)
	if text == "" {
		return nil
	}
	re, err := regexp.Compile(text)
	f.fail(name, err)
	return re
}

// span reads a length of time, 0 when there is none.
func (f *reading) span(name string) time.Duration {
	text := f.flag(name)
	if text == "" {
		return 0
	}
	d, ok := parseSpan(text)
	if !ok || d <= 0 {
		f.fail(name, fmt.Errorf("%q is not a length of time, such as 30s", text))
	}
	return d
}

// time reads a point in time; relative ones are from now.
func (f *reading) time(name string) time.Time {
	t, err := parseTime(f.flag(name), timesOf(f.flags))
	f.fail(name, err)
	return t
}

// until reads the time at which a range ends.
func (f *reading) until(name string) time.Time {
	t, err := parseEnd(f.flag(name), timesOf(f.flags))
	f.fail(name, err)
	return t
}

// whole reads a flag that is a number within bounds.
func (f *reading) whole(name string, lo, hi int) int {
	n, err := f.flags.Flags().GetInt(name)
	if err == nil && (n < lo || n > hi) {
		err = fmt.Errorf("%d is not %d to %d", n, lo, hi)
	}
	f.fail(name, err)
	return n
}
