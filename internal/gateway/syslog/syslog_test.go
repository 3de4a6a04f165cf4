package syslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
)

var now = time.Date(2026, 11, 20, 20, 0, 0, 0, time.UTC)

func decode(line string, o Options) schemas.Event {
	o.Now = now
	return NewDecoder().Decode(Frame{Line: []byte(line)}, o)
}

func TestRecordedStream(t *testing.T) {
	f := NewFramer(bytes.NewReader(inputtest.RecordedBytes(t, "rsyslog-rfc5424-octet-counted.tcp.body")))
	d := NewDecoder()
	var events []schemas.Event
	for {
		frame, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, d.Decode(frame, Options{Now: now, Peer: "192.0.2.1"}))
	}
	inputtest.Same(t, events, `
ts 2026-11-20T19:59:48.77754Z
level notice
service probe
message hello from logger é
  host vm
  facility user
  timeQuality.tzKnown 1
  timeQuality.isSynced 0

ts 2026-11-20T19:59:48.781261Z
level warn
service probe
message  hello via unix socket
  host vm
  facility auth

ts 2026-11-20T19:59:48.783398Z
level notice
service probe
message structured
  host vm
  facility user
  timeQuality.tzKnown 1
  timeQuality.isSynced 0
  x@32473.user u1
`)
}

func TestDecode(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	for _, c := range []struct{ name, line, want string }{
		{"5424 with all parts", `<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog 77 ID47 [exampleSDID@32473 iut="3" eventSource="App\"lication\]"][empty@1] ` + "\ufeffAn event\n", `
ts 2003-10-11T22:14:15.003Z
level notice
service evntslog
type ID47
message An event
  host mymachine.example.com
  facility local4
  proc_id 77
  exampleSDID@32473.iut 3
  exampleSDID@32473.eventSource App"lication]
  empty@1 ` + "\n"},
		{"5424 with a parameter twice", `<13>1 - - - - - [origin ip="192.0.2.1" ip="192.0.2.129"]`, `
level notice
  host 198.51.100.7
  facility user
  origin.ip 192.0.2.1
  origin.ip#2 192.0.2.129
`},
		{"5424 that does not parse", `<11>1 yesterday vm app 1 2 - text`, `
level error
message <11>1 yesterday vm app 1 2 - text
  host 198.51.100.7
  facility user
  syslog.error expecting a RFC3339MICRO timestamp or a nil value [col 6]
`},
		{"3164", `<34>Nov 19 22:14:15 mymachine su[123]: 'su root' failed`, `
ts 2026-11-19T21:14:15Z
level crit
service su
message 'su root' failed
  host mymachine
  facility auth
  proc_id 123
`},
		{"3164 of the year before", "<13>Dec  1 00:00:00 vm app: x", `
ts 2025-11-30T23:00:00Z
level notice
service app
message x
  host vm
  facility user
`},
		{"3164 with a full time", "<13>2026-11-19T10:00:00+01:00 vm app: x", `
ts 2026-11-19T09:00:00Z
level notice
service app
message x
  host vm
  facility user
`},
		{"3164 without a stamp", "<13>app: something", `
level notice
message <13>app: something
  host 198.51.100.7
  facility user
  syslog.error expecting a sequence number (from 1 to max 255 digits) [col 4]
`},
		{"no priority", "Mar 27 13:06:56 vm sshd[1]: message repeated 2 times: [ x]", `
message Mar 27 13:06:56 vm sshd[1]: message repeated 2 times: [ x]
  host 198.51.100.7
  syslog.error it does not begin with a priority from <0> to <191>
`},
		{"a priority above 191", "<192>Nov 19 22:14:15 vm app: x", `
message <192>Nov 19 22:14:15 vm app: x
  host 198.51.100.7
  syslog.error it does not begin with a priority from <0> to <191>
`},
		{"a time no event may have", "<13>1 2030-01-01T00:00:00Z vm app - - - x", `
level notice
service app
message x
  host vm
  facility user
  syslog.timestamp 2030-01-01T00:00:00Z
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inputtest.Same(t, []schemas.Event{decode(c.line, Options{Location: berlin, Peer: "198.51.100.7"})}, c.want)
		})
	}
}

func TestWithYear(t *testing.T) {
	for _, c := range []struct {
		now, stamp, want string
	}{
		{"2026-11-20T20:00:00Z", "Nov 20 20:00:00", "2026-11-20T20:00:00Z"},
		{"2026-11-20T20:00:00Z", "Nov 21 19:00:00", "2026-11-21T19:00:00Z"}, // a clock that goes ahead
		{"2026-11-20T20:00:00Z", "Nov 22 00:00:00", "2026-11-22T00:00:00Z"}, // too far, and not of the year before
		{"2026-11-20T20:00:00Z", "Nov 28 00:00:00", "2025-11-28T00:00:00Z"},
		{"2027-01-01T00:00:05Z", "Dec 31 23:59:59", "2026-12-31T23:59:59Z"},
		{"2026-12-31T23:59:59Z", "Jan  1 00:00:01", "2027-01-01T00:00:01Z"},
		{"2026-11-20T20:00:00Z", "Feb 29 12:00:00", "2024-02-29T12:00:00Z"},
		{"2103-11-20T20:00:00Z", "Feb 29 12:00:00", "2096-02-29T12:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		stamp, err := time.Parse(time.Stamp, c.stamp)
		if err != nil {
			t.Fatal(err)
		}
		if got := withYear(stamp, &Options{Now: at}).Format(time.RFC3339); got != c.want {
			t.Errorf("%s at %s is %s, expected %s", c.stamp, c.now, got, c.want)
		}
	}
}

func TestLongMessagesFitAnEvent(t *testing.T) {
	long := strings.Repeat("é", MaxLineBytes)
	var params strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&params, ` p%d="x"`, i)
	}
	for name, line := range map[string]string{
		"text":            "<13>1 - vm app - - - " + long,
		"no priority":     long,
		"structured data": "<13>1 - vm app - - [" + strings.Repeat("i", 32) + params.String() + "] " + long[:2000],
	} {
		t.Run(name, func(t *testing.T) {
			frame, err := NewFramer(strings.NewReader(line + "\n")).Next()
			if err != nil {
				t.Fatal(err)
			}
			ev := NewDecoder().Decode(frame, Options{Now: now})
			if err := ev.Validate(now.UnixNano(), now.UnixNano()); err != nil {
				t.Fatal(err)
			}
			attrs := map[string]string{}
			for i := range ev.Attrs {
				attrs[ev.Attrs[i].Key] = ev.Attrs[i].Text()
			}
			if name == "structured data" {
				if attrs[AttrError] == "" || ev.Message != line {
					t.Errorf("%q, %d of %d bytes", attrs[AttrError], len(ev.Message), len(line))
				}
				return
			}
			kept := strings.Count(ev.Message, "é") * len("é")
			if kept < MaxLineBytes*9/10 || attrs[AttrCut] != fmt.Sprint(len(long)-kept) || strings.ToValidUTF8(ev.Message, "?") != ev.Message {
				t.Errorf("%d bytes kept, cut %s of %d", kept, attrs[AttrCut], len(long))
			}
		})
	}
}

func TestFramer(t *testing.T) {
	big := strings.Repeat("x", MaxLineBytes+10)
	for _, c := range []struct {
		name, stream string
		want         []string
		cut          int // of the last message
		err          error
	}{
		{name: "newlines", stream: "<13>a\n\r\n<13>b\r\n\n<13>c", want: []string{"<13>a", "<13>b", "<13>c"}, err: io.EOF},
		{name: "counts", stream: "5 <13>a7 <13>b\n\n5 <13>c", want: []string{"<13>a", "<13>b", "<13>c"}, err: io.EOF},
		{name: "both", stream: "<13>a\n5 <13>b\n<13>c\n", want: []string{"<13>a", "<13>b", "<13>c"}, err: io.EOF},
		{name: "a number that is not a count", stream: "2026 was\n12\n1 2 <3>\n12345678 <1>x\n", want: []string{"2026 was", "12", "1 2 <3>", "12345678 <1>x"}, err: io.EOF},
		{name: "cut within a count", stream: "9 <13>a", err: io.ErrUnexpectedEOF},
		{name: "digits at the end", stream: "12", want: []string{"12"}, err: io.EOF},
		{name: "a long line", stream: big + "\n<13>b\n", want: []string{big[:MaxLineBytes], "<13>b"}, err: io.EOF},
		{name: "a long last line", stream: big, want: []string{big[:MaxLineBytes]}, cut: 10, err: io.EOF},
		{name: "a long count", stream: fmt.Sprintf("%d <1>%s5 <13>b", len(big)+3, big), want: []string{"<1>" + big[:MaxLineBytes-3], "<13>b"}, err: io.EOF},
		{name: "empty", err: io.EOF},
	} {
		for _, reader := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
			t.Run(c.name, func(t *testing.T) {
				f := NewFramer(reader(strings.NewReader(c.stream)))
				var cut int
				for _, want := range c.want {
					frame, err := f.Next()
					if err != nil {
						t.Fatal(err)
					}
					if cut = frame.Cut; string(trim(frame.Line)) != want {
						t.Errorf("%.80q (%d bytes), expected %.80q", frame.Line, len(frame.Line), want)
					}
				}
				if cut != c.cut {
					t.Errorf("%d bytes cut, expected %d", cut, c.cut)
				}
				if frame, err := f.Next(); !errors.Is(err, c.err) {
					t.Errorf("%q, %v, expected %v", frame.Line, err, c.err)
				}
			})
		}
	}
}

// Whatever comes, each message becomes an event that no limit refuses, and none of
// the bytes of a message that does not parse is lost.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("<34>Nov 19 22:14:15 mymachine su[123]: 'su root' failed\n<13>x\n"))
	f.Add([]byte(`112 <13>1 2026-11-20T19:59:48.777540+00:00 vm probe - - [timeQuality tzKnown="1" isSynced="0"] hello from logger e`))
	f.Add([]byte("<165>1 2003-10-11T22:14:15.003Z h a p m [a@1 b=\"\\\"\\]\" b=\"2\"][c] \ufeffx"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		framer, d := NewFramer(bytes.NewReader(stream)), NewDecoder()
		for {
			frame, err := framer.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatal(err)
				}
				return
			}
			ev := d.Decode(frame, Options{Now: now, Peer: "192.0.2.1"})
			if !ev.Time.IsZero() && ev.Time.Before(time.Unix(0, 1)) {
				t.Fatalf("time %s", ev.Time)
			}
			at := now.UnixNano()
			if !ev.Time.IsZero() {
				at = ev.Time.UnixNano()
			}
			if err := ev.Validate(at, now.UnixNano()); err != nil {
				t.Fatal(err)
			}
			for i := range ev.Attrs {
				if ev.Attrs[i].Key == AttrError && frame.Cut == 0 && len(frame.Line) < MaxLineBytes/2 && ev.Message != string(trim(frame.Line)) {
					t.Fatalf("%q became %q", frame.Line, ev.Message)
				}
			}
		}
	})
}
