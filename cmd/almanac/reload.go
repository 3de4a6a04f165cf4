package main

import (
	"reflect"
	"slices"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/schemas"
)

// reloader reads the settings again while the process works.
type reloader struct {
	cmd *cobra.Command
	log zerolog.Logger
	// now are the settings that hold, and topics those that were declared at the start.
	now    *settings
	values map[string]value
	topics []schemas.Topic
}

// newReloader remembers the settings of the start.
func newReloader(cmd *cobra.Command, s *settings, log zerolog.Logger) *reloader {
	return &reloader{cmd: cmd, log: log, now: s, values: s.values, topics: slices.Clone(s.Topics)}
}

// reload takes what may change while the process works, and names what may not. Files of tokens, with their rates, and of
// certificates are followed without it.
func (r *reloader) reload() { tellReloading(r.log, r.read) }

func (r *reloader) read() {
	again, err := load(r.cmd)
	if err != nil {
		r.log.Error().Err(err).Msg("SIGHUP: the settings cannot be used; those that were read before stay in use")
		return
	}
	taken, start := compare(r.values, again.values)
	if len(r.topics)+len(again.Topics) > 0 && !reflect.DeepEqual(r.topics, again.Topics) {
		start = append(start, topicsKey+" (or almanac topics apply -f "+again.File+")")
	}
	if slices.Contains(taken, "log_level") {
		r.now.level.set(again.LogLevel)
		r.values["log_level"] = again.values["log_level"]
	}
	r.log.Info().Strs("taken", taken).Strs("need_a_start", start).
		Msg("SIGHUP: settings were read again; tokens, their rates and certificates are taken within 2s of a change of their files")
}

// live are the settings that are taken while a process works.
var live = []string{"log_level"}

// compare returns the settings with another value, by whether they are taken or need a start.
func compare(before, after map[string]value) (taken, start []string) {
	taken, start = []string{}, []string{}
	for i := range keys {
		name := keys[i].name
		switch {
		case before[name].text == after[name].text:
		case slices.Contains(live, name):
			taken = append(taken, name)
		default:
			start = append(start, name)
		}
	}
	return taken, start
}
