package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Exit codes. 70 and 78 are EX_SOFTWARE and EX_CONFIG of sysexits.h, 130 is 128 + SIGINT.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartial     = 3
	exitConflict    = 4
	exitHung        = 70
	exitConfig      = 78
	exitInterrupted = 130
)

// exitKind is an exit code: what became of the work, and what to do next.
type exitKind struct {
	Code                  int
	Name, Meaning, Remedy string
}

// exitCodes are all that there are. Help and docs/reference.md are made of them.
var exitCodes = []exitKind{
	{exitOK, "ok", "what was asked for was done", "nothing"},
	{exitFailed, "failed", "it was not done, or what was examined is not well", "read the message; `almanac doctor` says what is wrong with the servers"},
	{exitUsage, "usage", "what was typed cannot be", "`almanac help VERB`"},
	{exitPartial, "partial", "some of it was done, and the rest is named", "mend what is named and run it again"},
	{exitConflict, "conflict", "something else was changed meanwhile, and nothing was done", "read what is there now, and decide by that"},
	{exitHung, "hung", "the embedded NATS hangs", "start `almanac up` again, as a supervisor does"},
	{exitConfig, "configuration", "a setting cannot be used", "`almanac config check`"},
	{exitInterrupted, "interrupted", "a signal ended it", "run it again"},
}

// exits declares what codes mean at one verb, where that says more than exitCodes.
type exits map[int]string

// exitNote begins the annotations of a command with what codes mean there.
const exitNote = "almanac exit "

// declared is the annotation of a command.
func (e exits) declared() map[string]string {
	notes := make(map[string]string, len(e))
	for code, means := range e {
		notes[exitNote+strconv.Itoa(code)] = means
	}
	return notes
}

// exitsOf are what a command declared.
func exitsOf(c *cobra.Command) exits {
	e := exits{}
	for key, means := range c.Annotations {
		if text, is := strings.CutPrefix(key, exitNote); is {
			code, _ := strconv.Atoi(text)
			e[code] = means
		}
	}
	return e
}

// lines are the codes with their meanings, in order.
func (e exits) lines() string {
	var b strings.Builder
	for _, code := range slices.Sorted(maps.Keys(e)) {
		fmt.Fprintf(&b, "\n  %-3d  %s", code, e[code])
	}
	return b.String()
}

// helpExits puts into the help of a command, and of those below it, what it declared.
func helpExits(c *cobra.Command) {
	if e := exitsOf(c); len(e) > 0 {
		c.Long = cmp.Or(c.Long, c.Short+".") + "\n\nExit codes:" + e.lines()
	}
	for _, below := range c.Commands() {
		helpExits(below)
	}
}

// ofAll are the codes of every verb.
func ofAll() exits {
	e := exits{}
	for _, x := range exitCodes {
		e[x.Code] = x.Name + ": " + x.Meaning
	}
	return e
}

// What several verbs declare.
var (
	// shortAnswer is of verbs that answer from ClickHouse once what was accepted is stored.
	shortAnswer = exits{exitPartial: "answered without what was accepted and is not stored yet"}
	// linesRefused is of verbs that import lines.
	linesRefused = exits{exitPartial: "some lines were refused; each is named"}
	// otherDocument is of verbs that change documents.
	otherDocument = exits{exitConflict: "the document exists, has another version, is under another path, is locked, or was changed by others each time"}
	// otherTimer is of verbs that change timers.
	otherTimer = exits{exitConflict: "the timer exists with another content, has another revision, is being called, or is in another state"}
	// erasing is of verbs that erase.
	erasing = exits{exitOK: "erased", exitPartial: "not certified; the reason is printed"}
	// lettersStay is of verbs that send dead letters again, or drop them.
	lettersStay = exits{exitOK: "all of them", exitPartial: "some stay; each is named"}
)
