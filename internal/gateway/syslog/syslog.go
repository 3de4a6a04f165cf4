package syslog

import (
	"bytes"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	syslog "github.com/leodido/go-syslog/v4"
	"github.com/leodido/go-syslog/v4/rfc3164"
	"github.com/leodido/go-syslog/v4/rfc5424"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// The attributes of a message beside its own.
const (
	AttrHost      = "host"
	AttrFacility  = "facility"
	AttrProcID    = "proc_id"
	AttrError     = "syslog.error"     // why the message is kept whole
	AttrCut       = "syslog.cut_bytes" // how many bytes of the message are missing
	AttrTimestamp = "syslog.timestamp" // a time that no event may have
)

// Options say how to read messages.
type Options struct {
	// Now tells the year of stamps without one, and which times lie too far ahead.
	Now time.Time
	// Location is the zone of stamps without one; nil: UTC.
	Location *time.Location
	// Peer is the sender's address, for messages that name no host.
	Peer string
	// Topic, when not nil, is where the events go; see rawjson.Keys.
	Topic *schemas.Topic
}

// Decoder reads messages. It is not safe for concurrent use.
type Decoder struct {
	rfc5424, rfc3164 syslog.Machine
}

// NewDecoder makes a decoder.
func NewDecoder() *Decoder {
	return &Decoder{
		rfc5424: rfc5424.NewMachine(rfc5424.WithBestEffort()),
		rfc3164: rfc3164.NewMachine(rfc3164.WithBestEffort(), rfc3164.WithRFC3339(), rfc3164.WithSecondFractions(),
			rfc3164.WithLenientDay(), rfc3164.WithEmbeddedNewlines()),
	}
}

// message is what could be read of one message.
type message struct {
	base       syslog.Base
	structured []rawjson.Pair
	err        error // why it is kept whole
}

// cutAttrBytes is what the attribute that counts the missing bytes adds to an event: its name, and 8
// bytes, which is what schemas.Event.Bytes counts of any number.
const cutAttrBytes = len(AttrCut) + 8

// noAttributes are the paths of records whose fields are filled here.
var noAttributes = rawjson.NewPaths(nil)

// Decode makes an event of a message.
func (d *Decoder) Decode(f Frame, o Options) schemas.Event {
	line := trim(f.Line)
	m := d.parse(line)
	ev := m.event(line, f.Cut, &o)
	over := ev.Bytes() - schemas.MaxEventBytes
	if over <= 0 {
		return ev
	}
	// Where more than half of the message would have to go, the structured data is what is long, as each
	// parameter repeats its name. The message then is the whole line, which has it once.
	if over > len(ev.Message)/2 {
		m.structured, m.err = nil, errors.New("structured data above the limits of an event")
		ev = m.event(line, f.Cut, &o)
		if over = ev.Bytes() - schemas.MaxEventBytes; over <= 0 {
			return ev
		}
	}
	kept := clip(ev.Message, len(ev.Message)-over-cutAttrBytes)
	missing := len(ev.Message) - len(kept)
	ev = m.event(line, f.Cut+missing, &o)
	ev.Message = kept
	return ev
}

// clip returns the first n bytes of a text, or less where that would split a character.
func clip(s string, n int) string {
	if n <= 0 {
		return ""
	}
	for back := 0; back < utf8.UTFMax && n-back > 0; back++ {
		if utf8.RuneStart(s[n-back]) {
			return s[:n-back]
		}
	}
	return s[:n]
}

func (m *message) event(line []byte, cut int, o *Options) schemas.Event {
	var pairs []rawjson.Pair
	add := func(key string, value *string) {
		if value != nil {
			pairs = append(pairs, rawjson.Pair{Key: key, Value: *value})
		}
	}
	b := &m.base
	host := b.Hostname
	if host == nil && o.Peer != "" {
		host = &o.Peer
	}
	add(AttrHost, host)
	if b.Facility != nil {
		add(AttrFacility, b.FacilityLevel())
	}
	add(AttrProcID, b.ProcID)
	pairs = append(pairs, m.structured...)
	at, err := m.time(o)
	if err != nil {
		text := b.Timestamp.Format(time.RFC3339Nano)
		add(AttrTimestamp, &text)
	}
	if m.err != nil {
		text := m.err.Error()
		add(AttrError, &text)
	}
	var counts []string
	if cut > 0 {
		counts = append(counts, `{"`+AttrCut+`":`+strconv.Itoa(cut)+`}`)
	}
	ev, err := rawjson.Keys{Paths: noAttributes, Topic: o.Topic}.FromRecord(pairs, counts...)
	if err != nil { // cannot be: the pairs are texts
		ev = schemas.Event{}
	}
	ev.Time = at
	ev.Level = levels(b.Severity)
	ev.Service, ev.Type = text(b.Appname), text(b.MsgID)
	if ev.Message = text(b.Message); m.err != nil {
		ev.Message = string(line)
	}
	return ev
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

var severities = [...]string{"emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"}

func levels(severity *uint8) string {
	if severity == nil || int(*severity) >= len(severities) {
		return ""
	}
	return severities[*severity]
}

// trim takes off what ends a message in some framings: newlines and zero bytes.
func trim(line []byte) []byte { return bytes.TrimRight(line, "\r\n\x00") }
