package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// wording is what people read in place of a library's error, and what they can do.
type wording struct {
	err  error
	say  string // instead of err's own text; empty keeps it
	next string // the next step; empty: the message around err has one
}

// wordings are the errors that other programs' libraries return to a verb.
var wordings = []wording{
	{nats.ErrNoServers, "no server answers", "start it, or name another with --nats"},
	{nats.ErrAuthorization, "the server refuses the account", "give one with --nats-creds, or in the URL of --nats"},
	{nats.ErrAuthExpired, "the account has expired", "give another with --nats-creds"},
	{nats.ErrTimeout, "no answer in time", "try again; `almanac doctor` looks at both servers"},
	{nats.ErrNoResponders, "JetStream does not answer", "see that the server runs with JetStream: `almanac doctor`"},
	{nats.ErrConnectionClosed, "the connection is closed", "try again; `almanac doctor` looks at both servers"},
	{nats.ErrDisconnected, "the connection is lost", "try again; `almanac doctor` looks at both servers"},
	{nats.ErrReconnectBufExceeded, "NATS is away, and its library holds all that it may", "start it again; `send --full spool` keeps lines on disk until then, and the next one sends them"},
	{nats.ErrMaxPayload, "the message is larger than the server takes", "set max_payload of the NATS server to 8MB"},
	{jetstream.ErrJetStreamNotEnabled, "JetStream is off", "start the NATS server with JetStream"},
	{jetstream.ErrJetStreamNotEnabledForAccount, "JetStream is off for this account", "enable it for the account on the NATS server"},
	{jetstream.ErrStreamNotFound, "the stream does not exist", "start `almanac up` or `almanac router` once: they create it"},
	{jetstream.ErrBucketNotFound, "the registry does not exist", "start `almanac up` or `almanac router` once: they create it"},
	{jetstream.ErrKeyNotFound, "no such entry", "`almanac doctor` looks at the registry"},
	{jetstream.ErrMsgNotFound, "no such message", "`almanac verify` tells whether something is missing"},
	{tables.ErrNoSpace, "", "free space on the disk of ClickHouse, then run this again"},
	{tables.ErrAccount, "", "correct the account or its password in the setting clickhouse; `almanac config clickhouse` prints the accounts that ClickHouse needs"},
	{tables.ErrUnreachable, "", "start it, or name another with --clickhouse"},
	{context.DeadlineExceeded, "no answer in time", "try again; `almanac doctor` looks at both servers"},
}

// inWords is an error's text without the words of libraries, and with a next step.
func inWords(err error) string {
	said, next := translated(err)
	if next != "" && !strings.Contains(said, next) {
		said += ": " + next
	}
	return said
}

// translated is an error's text without the words of libraries, and the next step where a
// library's error has one.
func translated(err error) (said, next string) {
	said = schemas.Text(err)
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		said = strings.ReplaceAll(said, op.Error(), dialled(op))
	}
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		said = strings.ReplaceAll(said, file.Error(), onFile(file))
	}
	if number := (*strconv.NumError)(nil); errors.As(err, &number) {
		said = strings.ReplaceAll(said, number.Error(), fmt.Sprintf("%q is not a number", number.Num))
	}
	if api := (*jetstream.APIError)(nil); errors.As(err, &api) && !errors.As(err, new(jetstream.JetStreamError)) {
		said = strings.ReplaceAll(said, api.Error(), "NATS refused: "+api.Description)
	}
	for _, w := range wordings {
		if !errors.Is(err, w.err) {
			continue
		}
		if w.say != "" {
			said = strings.ReplaceAll(said, w.err.Error(), w.say)
		}
		if next = w.next; w.err == tables.ErrUnreachable && hungUp(err) { //nolint:errorlint // a row of the table
			next = "it is there and closes connections: it starts or stops just now, or other processes hold all it has (see whose by `ss -tnp`); try again"
		}
		break
	}
	return strings.ReplaceAll(strings.TrimPrefix(said, "nats: "), ": nats: ", ": "), next
}

// hungUp reports whether a server took a connection and closed it.
func hungUp(err error) bool { return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) }

// onFile is what became of a file.
func onFile(e *fs.PathError) string {
	reason := e.Err.Error()
	switch {
	case errors.Is(e, fs.ErrNotExist):
		reason = "it does not exist"
	case errors.Is(e, syscall.EISDIR):
		reason = "it is a directory"
	case errors.Is(e, fs.ErrPermission):
		reason = "this account has no permission"
	}
	return "cannot " + e.Op + " " + e.Path + ": " + reason
}

// dialled is what became of a connection: the server's address and the reason.
func dialled(op *net.OpError) string {
	reason := op.Err
	for next := errors.Unwrap(reason); next != nil; next = errors.Unwrap(reason) {
		reason = next
	}
	if op.Addr == nil {
		return reason.Error()
	}
	return privacy.MaskedURL(op.Addr.String()) + ": " + reason.Error()
}
