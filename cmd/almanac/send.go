package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/send"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
)

func (a *app) sendCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "send TOPIC [FILE…]",
		Short: "Send lines as events",
		Long: `Send lines as events, from files or stdin, also of gzip or zstd. Says how many were accepted (they are
on disk), and which lines were refused and why. While NATS is away, or stores nothing,
it waits, and says what for; with --full spool it keeps on disk what it cannot send, and
ends: the next send of the topic with --full spool sends that too. An empty input sends
only what is there.`,
		Annotations: exits{exitOK: "all accepted", exitFailed: "none accepted", exitPartial: "some refused or in the spool"}.declared(),
		Example: `  seq 1 1000 | almanac send app
  almanac send auth --format ndjson --ts-field eventTime --user-field userIdentity.arn < trail.jsonl
  almanac send trail --format json --records Records --ts-field eventTime --map type=eventName < trail.json
  almanac send web access.log --ts-format clf --extract '"(?P<method>\S+) (?P<path>\S+) [^"]*" (?P<status>\d+)'
  almanac send app server.log --multiline '^\[\d{4}-' --ts-format log4j
  almanac send app --full spool --spool-dir /var/spool/almanac < lines.txt
  almanac send app --to http://127.0.0.1:7070 --format ndjson < events.ndjson`,
		Args: arguments(1, -1),
		RunE: a.does(a.send),
	}
	flagsOf(cmd, &operations.SendEvents, remoteParams...)
	addFlags(cmd,
		short(orElse(flagOf(&operations.SendEvents, "format"), intake.FormatText), "f"),
		textsFlag("map", "fill a column or a promoted field from another field, `COLUMN=FIELD`; can be repeated"),
		textFlag("records", "`PATH` of dotted keys to the array that holds the records (json)"),
		switchFlag("cut", "keep the beginning of records above 64 KiB, marked with their size and SHA-256"),
		switchFlag("split", "make several events of a record above 64 KiB, marked likewise and numbered"),
		textFlag("report", "append the line number of each accepted record to `FILE`, as it is accepted"),
		textFlag("timeout", "give up after so much `TIME` without one accepted (default: never; with --full spool 5s after the last line)"),
		textFlag("to", "send to the gateway at `URL`, such as http://127.0.0.1:7070, and not through NATS"),
		short(switchFlag("quiet", "no progress and no summary"), "q"),
	)
	keyFlags(cmd.Flags(), "full", "spool_dir", "spool_bytes", "ca_file")
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

func (a *app) send(ctx context.Context, cmd *cobra.Command, args []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	f := reading{flags: cmd}
	opts := f.options()
	quiet, patience := f.flag("quiet") == "true", f.span("timeout")
	o := format(cmd, asTable)
	if err = errors.Join(f.err, schemas.ValidateTopicName(args[0])); err != nil {
		return err
	}
	if err := opts.Validate(); err != nil {
		return usageError{err}
	}
	files, total, err := a.inputs(args[1:])
	if err != nil {
		return err
	}
	if to := f.flag("to"); to != "" {
		return a.sendTo(ctx, cmd, &f, args[0], to, s, files, total, o)
	}
	d, err := findEndpoints(s, natsAlone)
	none := err // no up runs, where that is so
	if errors.Is(err, embedded.ErrNoAddresses) && s.Full == fullSpool {
		d, err = endpoints{nats: nowhere, dir: s.Data, followNATS: true}, nil
	}
	if err != nil {
		return err
	}
	t, err := send.NewStats(f.flag("report"), inWords)
	if err != nil {
		return err
	}
	cfg := producer.Config{
		Topic: args[0], Policy: producer.Block, PrivacyKey: []byte(s.PIIKey), NATS: natsOptions(s, d, "send"),
		Hooks: producer.Hooks{OnError: t.Trouble}, Stderr: io.Discard, // the summary says what was given up
	}
	if s.Full == fullSpool {
		cfg.Policy, cfg.SpoolDir, cfg.SpoolBytes = producer.Spool, s.SpoolDir, s.SpoolBytes
		cfg.Hooks.OnError = func(err error) {
			t.Trouble(err)
			if errors.Is(err, spool.ErrDamaged) {
				a.note("%v", err)
			}
		}
	}
	p, err := producer.Connect(ctx, d.nats, cfg)
	switch {
	case errors.Is(err, schemas.ErrUnknownTopic):
		return cmp.Or(declared(ctx, s, d, args[0]), err)
	case errors.Is(err, schemas.ErrPrivacyKey):
		return usageError{fmt.Errorf("topic %q hashes fields, and no key is given: set ALMANAC_PII_KEY, or ALMANAC_PII_KEY_FILE, to what the topic's other producers have", args[0])}
	case err != nil && none != nil:
		return fmt.Errorf("%w; the spool in %s does not know topic %s yet. The first send with --full spool needs the server, unless another send was before it", none, s.SpoolDir, args[0])
	}
	if err != nil {
		return err
	}
	topic := p.Topic()
	opts.Topic = &topic
	err = opts.Validate()
	if err == nil && opts.Long == intake.LongSplit && topic.HasIdentity() {
		err = fmt.Errorf("--split: events of topic %s (kind %s) have an identity, and the parts of one would be copies of each other; pass --cut", topic.Name, topic.Kind)
	}
	if err != nil {
		gone, cancel := context.WithCancel(ctx)
		cancel()
		return errors.Join(usageError{err}, p.Close(gone), t.Finish())
	}
	if kept := opts.RawKeeps(); kept != nil && !quiet {
		a.note("the message of each event is the whole line, which keeps in clear what the rules of topic %s take out of %s: pass --drop-raw, or declare a rule for message",
			topic.Name, strings.Join(kept, ", "))
	}
	if s.Full != fullSpool && (d.dir != "" || s.values["spool_dir"].origin != "default") {
		if err := producer.LeaveTopic(s.SpoolDir, p.Topic()); err != nil && !quiet {
			a.note("note: the first send with --full spool will need the server: %v", err)
		}
	}
	job := &send.Local{Producer: p, Options: opts, Stats: t, MaxWait: patience, Spool: s.Full == fullSpool, Note: a.note,
		Why: func(ctx context.Context) error { return storing(ctx, s, d) }, Progress: a.sendProgress(quiet, args[0], total, t)}
	err = errors.Join(job.Run(ctx, files), t.Finish())
	if t.AllObjects() && !cmd.Flags().Changed("format") && !quiet {
		a.note("every line looks like JSON and was sent as text: pass --format ndjson to make its keys fields")
	}
	sum := t.Summary()
	sum.SpoolDir = cfg.SpoolDir
	return a.sent(sum, o, quiet, err)
}

// nowhere is a NATS that does not answer: where it will listen is known once an
// up runs on the data directory (follower).
const nowhere = "nats://127.0.0.1:1"

// inputs opens the named files, or stdin; total is their bytes, 0 when unknown.
func (a *app) inputs(names []string) (files []send.Input, total int64, err error) {
	if len(names) == 0 {
		if terminal(a.stdin) {
			a.note("reading lines from the terminal; Ctrl-D ends them")
		}
		names = []string{"-"}
	}
	for _, name := range names {
		in := send.Input{Name: name, Reader: a.stdin}
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				return nil, 0, err
			}
			in.Reader = f
		}
		if in.Regular() {
			total += in.Info().Size()
		} else if _, ok := in.Reader.(*os.File); ok {
			total = -1 << 62 // one without a size makes the whole unknown
		}
		files = append(files, in)
	}
	return files, max(total, 0), nil
}

// declared is the registry's refusal of a topic, which names those there are; nil where the
// registry cannot be read, or has it by now.
func declared(ctx context.Context, s *settings, d endpoints, topic string) error {
	c, err := openRegistry(ctx, s, d)
	if err != nil {
		return nil //nolint:nilerr // the caller has the error that led here
	}
	defer func() { _ = c.Close() }()
	if _, err = c.reg.Topic(ctx, topic); errors.As(err, new(*registry.UnknownTopicError)) {
		return err
	}
	return nil
}
