package streams

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Message is a message as a stream holds it. Subject, Sequence and Time are the
// server's; Header and Data are what the publisher sent, whatever they claim.
type Message struct {
	jetstream.RawStreamMsg
	// Pending is how many messages of the filter follow it, as the server counts.
	Pending uint64
	// Size is the payload's bytes, also where the payload was not asked for.
	Size int
}

// Headers that the server appends to a message of a batched direct get, in this
// order. A publisher may set the same names: the server's value is the last one.
var serverHeaders = []string{
	jetstream.StreamHeader, jetstream.SubjectHeader, jetstream.SequenceHeader,
	jetstream.TimeStampHeaer, headerPending, headerLastSeq,
}

// aloneHeaders are those that it appends to a message of a direct get of one.
var aloneHeaders = serverHeaders[:4]

const (
	headerPending = "Nats-Num-Pending"
	headerLastSeq = "Nats-Last-Sequence" // of the message sent before it in this answer
	headerUpTo    = "Nats-UpTo-Sequence" // the last sequence that the answer covers
	headerStatus  = "Status"
	headerReason  = "Description"

	headerDelivered = "Nats-Last-Consumer" // of a heartbeat: the messages delivered so far
)

// Statuses of an answer.
const (
	statusEnd          = "204"
	statusNone         = "404"
	statusTooMany      = "413"
	statusHeartbeat    = "100"
	statusNoResponders = "503"
)

// LastValue returns a header's last value, which is the server's where it
// appended one.
func LastValue(h nats.Header, name string) string {
	v := h[name]
	if len(v) == 0 {
		return ""
	}
	return v[len(v)-1]
}

// errUnclear: what in the message is the server's word cannot be told. Its header
// block ends before the server's own lines, or does not parse.
var errUnclear = errors.New("the message's headers hide the server's")

// status is what the server said in place of a message.
type status struct {
	code, reason           string
	pending, lastSeq, upTo uint64
}

// parseDirect tells a stored message from a status in an answer to a batched
// direct get. Both arrive on the same subject, so the header block alone tells,
// and a publisher wrote part of it.
//
// The server appends its lines to the publisher's block. So either they are the
// last lines that were parsed, or an early blank line hid them, and then the raw
// block is longer than what was parsed by at least their length.
func parseDirect(m *nats.Msg, stream string) (*Message, *status, error) {
	if m.Header == nil || hidden(m) >= leastServerBytes(stream, serverHeaders) {
		return nil, nil, errUnclear
	}
	if LastValue(m.Header, jetstream.StreamHeader) != stream {
		return parseStatus(m)
	}
	out, err := stored(m)
	if err != nil {
		return nil, nil, err
	}
	var before uint64
	for _, n := range []struct {
		name string
		to   *uint64
	}{{headerPending, &out.Pending}, {headerLastSeq, &before}} {
		if *n.to, err = strconv.ParseUint(LastValue(m.Header, n.name), 10, 64); err != nil {
			return nil, nil, errUnclear
		}
	}
	out.Header = publishersOnly(m.Header, serverHeaders)
	return out, &status{lastSeq: before}, nil
}

// parseAlone is parseDirect for an answer to a direct get of one message, to which the server
// appends fewer lines. What is not a message of the stream is jetstream.ErrMsgNotFound or errUnclear.
func parseAlone(m *nats.Msg, stream string) (*Message, error) {
	if m.Header == nil || hidden(m) >= leastServerBytes(stream, aloneHeaders) {
		return nil, errUnclear
	}
	if LastValue(m.Header, jetstream.StreamHeader) != stream {
		if _, s, err := parseStatus(m); err != nil || s.code != statusNone {
			return nil, errUnclear
		}
		return nil, jetstream.ErrMsgNotFound
	}
	out, err := stored(m)
	if err != nil {
		return nil, err
	}
	out.Header = publishersOnly(m.Header, aloneHeaders)
	return out, nil
}

// stored reads what the server says of a message in each answer to a direct get. Its headers are not set.
func stored(m *nats.Msg) (*Message, error) {
	out := &Message{RawStreamMsg: jetstream.RawStreamMsg{Subject: LastValue(m.Header, jetstream.SubjectHeader), Data: m.Data}, Size: len(m.Data)}
	var err, err2 error
	out.Time, err = time.Parse(time.RFC3339Nano, LastValue(m.Header, jetstream.TimeStampHeaer))
	out.Sequence, err2 = strconv.ParseUint(LastValue(m.Header, jetstream.SequenceHeader), 10, 64)
	if err != nil || err2 != nil || out.Subject == "" || out.Sequence == 0 {
		return nil, errUnclear
	}
	return out, nil
}

func parseStatus(m *nats.Msg) (*Message, *status, error) {
	s := &status{code: m.Header.Get(headerStatus), reason: m.Header.Get(headerReason)}
	if s.code == "" || len(m.Data) > 0 {
		return nil, nil, errUnclear
	}
	if s.code == statusEnd {
		var err, err2 error
		s.pending, err = strconv.ParseUint(m.Header.Get(headerPending), 10, 64)
		s.lastSeq, err2 = strconv.ParseUint(m.Header.Get(headerLastSeq), 10, 64)
		if err != nil || err2 != nil {
			return nil, nil, errUnclear
		}
		s.upTo, _ = strconv.ParseUint(m.Header.Get(headerUpTo), 10, 64) // of last messages alone
	}
	return nil, s, nil
}

// publishersOnly removes the values that the server appended under some names.
func publishersOnly(h nats.Header, appended []string) nats.Header {
	for _, name := range appended {
		if v := h[name]; len(v) > 1 {
			h[name] = v[:len(v)-1]
		} else {
			delete(h, name)
		}
	}
	return h
}

// hidden is the most bytes that a message's header block can have behind what was
// parsed of it. What was parsed is counted at its shortest: without a space after
// the colon, and with one byte at the end of a line.
func hidden(m *nats.Msg) int {
	raw := m.Size() - len(m.Subject) - len(m.Reply) - len(m.Data)
	parsed := len("NATS/1.0\n") + len("\n")
	for k, values := range m.Header {
		for _, v := range values {
			if k == headerStatus || k == headerReason {
				parsed += len(v) // in the first line
			} else {
				parsed += len(k) + len(":") + len(v) + len("\n")
			}
		}
	}
	return raw - parsed
}

// leastServerBytes is the least that the server appends to a message, under some names.
func leastServerBytes(stream string, appended []string) int {
	n := len(stream) + len("x") + len("1") + len("2006-01-02T15:04:05Z") + len(appended[len(aloneHeaders):])*len("0")
	for _, name := range appended {
		n += len(name) + len(": \r\n")
	}
	return n
}

// parseStored reads the message in a leader's answer, where the publisher's header
// block is apart from the server's values.
func parseStored(data []byte) (*Message, error) {
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("the server's answer: %w", err)
	}
	switch {
	case answer.Error != nil && answer.Error.ErrorCode == codeNoMessage:
		return nil, jetstream.ErrMsgNotFound
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return nil, jetstream.ErrStreamNotFound
	case answer.Error != nil:
		return nil, answer.Error
	case answer.Message == nil || answer.Message.Seq == 0:
		return nil, fmt.Errorf("the server's answer has no message: %.200s", data)
	}
	m := answer.Message
	h, _ := nats.DecodeHeadersMsg(m.Header) // what is not a header block has no headers
	return &Message{RawStreamMsg: jetstream.RawStreamMsg{Subject: m.Subject, Sequence: m.Seq, Header: h, Data: m.Data, Time: m.Time}, Size: len(m.Data)}, nil
}

// codeNoMessage is JetStream's "no message found" (JSNoMessageFoundErr).
const codeNoMessage = 10037

// apiSubject is a subject of the JetStream API, under the connection's prefix.
func apiSubject(js jetstream.JetStream, tail string) string {
	o := js.Options()
	switch {
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "." + tail
	case o.Domain != "":
		return "$JS." + o.Domain + ".API." + tail
	}
	return "$JS.API." + tail
}
