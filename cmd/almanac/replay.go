package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
)

func (a *app) replayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay TOPIC | --resume JOB",
		Short: "Read a topic's events again, in order, into a pipe, a subject or another topic",
		Long: `Read a topic's events again: from the streams while they hold them, from
ClickHouse beyond. What was accepted before the start is replayed, nothing later.

At full speed shards come one after the other, each in the order of its positions;
--order time merges them by the events' time, which a paced replay (--speed 1x,
10x, …) does anyway.

--into - prints; a word is a topic, which gets every event once, with its id,
however often the job is taken up again or the same replay is run again (--again
adds them once more; ranges that overlap in part share events, which are then
there twice, and it says so); a name with a dot is a NATS subject, which
gets each event as a JSON message. Replaying a topic into itself adds nothing.

A printed line goes in again as the event that it was, by "almanac send --format
ndjson" or any input of JSON: with its id, and without month, shard and pos, which say
where it was stored.

Printed JSON has U+FFFD for bytes that are not UTF-8, and says so in the attribute
almanac_invalid_utf8. -o raw prints each event's message alone, byte for byte. A
topic gets every byte, a subject JSON.

The job's id is printed first: --resume goes on after an interruption or a crash.
Nothing is ever left out; after a kill up to a second of a printed replay may come
again.`,
		Annotations: exits{exitInterrupted: "interrupted; --resume goes on"}.declared(),
		Example: `  almanac replay app --from -1h > events.ndjson
  almanac replay auth --from 2026-11-20 --to 2026-11-21 --speed 10x
  almanac replay auth --where "level = 'error'" --into errors.replayed --rate 500
  almanac replay app --into copy
  almanac replay app -o raw > lines.txt
  almanac replay --resume 5f0c6f1d2b3a4958`,
		Args: arguments(0, 1),
		RunE: a.does(a.replay),
	}
	flagsOf(cmd, &operations.Events, "from", "to", "where")
	addFlags(cmd,
		textFlag("shard", "one `SHARD` only: 16 hex digits or its whole name"),
		textFlag("from-pos", "first `POSITION` of the shard"),
		textFlag("to-pos", "last `POSITION` of the shard"),
		orElse(textFlag("speed", "max, or times the events' own: 1x, 10x, 0.5x"), "max"),
		textFlag("rate", "at most so many `EVENTS` a second"),
		oneOfWords(textFlag("order", "position (default at full speed) or time (default when paced)"), replay.ByPosition, replay.ByTime),
		orElse(textFlag("into", "`TARGET`: - (print), a topic, or a NATS subject"), "-"),
		textFlag("resume", "go on with `JOB`"),
		switchFlag("again", "into a topic: also what the same replay added before, which is then there twice"),
		short(switchFlag("quiet", "no progress, no job id and no summary"), "q"),
	)
	outputFlag(cmd, asTable, asJSON, asNDJSON, asRaw)
	return cmd
}

func (a *app) replay(ctx context.Context, cmd *cobra.Command, args []string) error {
	f := reading{flags: cmd}
	pace := replay.Pace{Speed: f.speed(), Rate: f.perSecond()}
	req, err := f.replayRequest(args, pace)
	if err != nil {
		return err
	}
	o := format(cmd, "")
	return whenOpen(ctx, cmd, func(c *session, r *query.Reader) error {
		p, err := replay.New(ctx, replay.Config{NATS: c.nc, Registry: c.reg, DB: c.db, Reader: r})
		if err != nil {
			return err
		}
		quiet := f.flag("quiet") == "true"
		var job *replay.Job
		if id := f.flag("resume"); id != "" {
			job, err = p.Resume(ctx, id)
			if errors.Is(err, replay.ErrDone) {
				a.note("nothing to do: %s", err)
				return nil
			}
		} else {
			// What was accepted before now is on its way to the shards for some
			// milliseconds more.
			var pending uint64
			if pending, err = r.WaitRouted(ctx, routingWait); err == nil && pending > 0 {
				a.note("note: %d accepted events are not routed yet and will not be replayed; is a router running?", pending)
			}
			if err == nil {
				job, err = p.Begin(ctx, req)
			}
		}
		if err != nil {
			return err
		}
		return a.replayJob(ctx, c, job, pace, o, quiet)
	})
}

// routingWait is far above what a router takes, and short for who waits.
const routingWait = 10 * time.Second

func (a *app) replayJob(ctx context.Context, c *session, job *replay.Job, pace replay.Pace, o string, quiet bool) error {
	out := a.stdout
	printed := job.Spec().Kind == replay.IntoWriter
	if printed && o == asJSON {
		return usageError{errors.New("-o json: events are printed as ndjson or table; json is the summary of a replay into a topic or a subject")}
	}
	switch {
	case o == asRaw && !printed:
		return usageError{errors.New("-o raw prints messages: leave --into out")}
	case o == asRaw:
		job.PrintMessages()
	}
	if printed && o == asTable {
		out = &eventLines{w: bufio.NewWriter(a.stdout)}
	}
	if !printed {
		a.tellTarget(c)
	}
	if met := job.Meets(); len(met) > 0 {
		a.note("note: an event that this replay shares with job %s is in %s twice: only the same request, run again, adds nothing", strings.Join(met[:min(len(met), maxMetJobs)], ", "), job.Spec().Into)
	}
	if !quiet {
		a.note("job %s", job.ID())
	}
	stop := func() {}
	if terminal(a.stderr) && !quiet && !(printed && terminal(a.stdout)) {
		stop = a.watchReplay(job)
	}
	res, err := job.Run(ctx, out, pace)
	stop()
	if !printed && o != "" && o != asTable {
		if o == asJSON {
			err = errors.Join(err, a.printJSON(res))
		} else {
			err = errors.Join(err, printLines(a, []replay.Result{res}))
		}
	} else if !quiet {
		a.note("%s", said(res))
	}
	if err != nil && ctx.Err() != nil {
		if !quiet {
			a.note("interrupted; go on with almanac replay --resume %s", res.Job)
		}
		return errInterrupted
	}
	return err
}

// maxMetJobs bounds the overlapping jobs that are named.
const maxMetJobs = 5

// said is a result for people.
func said(r replay.Result) string {
	switch {
	case r.Same:
		return fmt.Sprintf("0 events added: %s is replayed into itself, and every event of it is there already", r.Topic)
	case r.Into == "" || r.Into == "-":
		return counted(r.Events, "event") + " replayed"
	case r.Before != "":
		return fmt.Sprintf("%s replayed into %s; what job %s replayed there before is not among them (--again adds it once more)", counted(r.Events, "event"), r.Into, r.Before)
	case r.Repeated > 0:
		return fmt.Sprintf("%s replayed into %s, %d of them known there from a run before", counted(r.Events, "event"), r.Into, r.Repeated)
	}
	return fmt.Sprintf("%s replayed into %s", counted(r.Events, "event"), r.Into)
}

// eventLines shows JSON lines to people.
type eventLines struct{ w *bufio.Writer }

// Write implements io.Writer; it is given whole lines.
func (e *eventLines) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if _, err := fmt.Fprintln(e.w, eventLine(readEvent(json.RawMessage(line)))); err != nil {
			return 0, err
		}
	}
	return len(p), e.w.Flush()
}

// replayRequest is what the flags ask for; with --resume the job knows it all.
func (f *reading) replayRequest(args []string, pace replay.Pace) (replay.Request, error) {
	req := replay.Request{
		Shard: f.flag("shard"), From: f.time("from"), To: f.until("to"), Where: f.flag("where"), Into: f.flag("into"), Now: time.Now(),
		Again: f.flag("again") == "true", FromPos: f.position("from-pos"), ToPos: f.position("to-pos"), Order: replay.Order(f.flag("order")),
	}
	switch req.Order {
	case "":
		req.Order = replay.ByPosition
		if pace.Speed > 0 {
			req.Order = replay.ByTime
		}
	case replay.ByPosition, replay.ByTime:
	default:
		f.fail("order", fmt.Errorf("%q is neither position nor time", req.Order))
	}
	if f.err != nil {
		return req, f.err
	}
	if f.flag("resume") == "" {
		if len(args) == 0 {
			return req, usageError{errors.New("which topic? almanac replay TOPIC, or --resume JOB")}
		}
		req.Topic = args[0]
		return req, nil
	}
	if len(args) > 0 {
		return req, usageError{errors.New("--resume takes no topic: the job knows it")}
	}
	for _, name := range []string{"shard", "from", "to", "from-pos", "to-pos", "where", "into", "order", "again"} {
		if f.flags.Flags().Changed(name) {
			return req, usageError{fmt.Errorf("--%s cannot be given with --resume: it is the job's", name)}
		}
	}
	return req, nil
}

func (f *reading) position(name string) uint64 {
	text := f.flag(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		f.fail(name, fmt.Errorf("%q is not a position; they count from 1", text))
	}
	return n
}

// speed reads --speed: 0 is as fast as it goes.
func (f *reading) speed() float64 {
	text := f.flag("speed")
	if text == "max" {
		return 0
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "x"), 64)
	if err != nil || !strings.HasSuffix(text, "x") || !(n >= minSpeed && n <= maxSpeed) {
		f.fail("speed", fmt.Errorf("%q is neither max nor a multiple such as 1x or 10x, from %gx to %.0fx", text, minSpeed, maxSpeed))
	}
	return n
}

// Beyond these a replay stands still, or is max in all but name.
const (
	minSpeed = 0.001
	maxSpeed = 1e6
)

func (f *reading) perSecond() float64 {
	text := f.flag("rate")
	if text == "" {
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0 && n <= 1e9) {
		f.fail("rate", fmt.Errorf("%q is not a number of events a second above 0", text))
	}
	return n
}

// watchReplay draws how far a job is until stop is called.
func (a *app) watchReplay(job *replay.Job) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	began := time.Now()
	first, _, _ := job.Progress()
	draw := func() {
		replayed, seen, total := job.Progress()
		took := max(time.Since(began), time.Millisecond)
		rate := float64(replayed-first) / took.Seconds()
		text := fmt.Sprintf("%s  %s events  %.0f/s", job.Spec().Topic, humanCount(replayed), rate)
		if total > 0 {
			part := min(float64(seen)/float64(total), 1)
			text = bar(part) + "  " + text
			if part > 0.01 && part < 1 {
				text += "  " + time.Duration(float64(took)*(1-part)/part).Round(time.Second).String() + " to go"
			}
		}
		_, _ = fmt.Fprint(a.stderr, clearLine+text)
	}
	go func() {
		defer close(done)
		tick := time.NewTicker(progressEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				draw()
				_, _ = fmt.Fprintln(a.stderr)
				return
			case <-tick.C:
				draw()
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}
