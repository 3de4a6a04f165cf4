package intake

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// show is a record in one line, for tables.
func show(rec Record) string {
	s := fmt.Sprintf("%d+%d ", rec.Line, rec.Lines)
	if rec.Err != nil {
		return s + "refused"
	}
	e := rec.Event
	for _, f := range []struct{ name, text string }{
		{"service", e.Service}, {"type", e.Type}, {"level", e.Level}, {"user", e.UserID}, {"message", e.Message},
	} {
		if f.text != "" {
			s += fmt.Sprintf("%s=%q ", f.name, f.text)
		}
	}
	if !e.Time.IsZero() {
		s += "ts=" + strconv.FormatInt(e.Time.Unix(), 10) + " "
	}
	for i := range e.Attrs {
		s += fmt.Sprintf("[%s]=%q ", e.Attrs[i].Key, e.Attrs[i].Text())
	}
	return strings.TrimSpace(s)
}

func TestRecords(t *testing.T) {
	rx := regexp.MustCompile
	for _, c := range []struct {
		name  string
		opts  Options
		input string
		want  []string
	}{
		{"text", Options{Format: "text"}, "a\r\n\n b \nlast", []string{
			`1+1 message="a"`, `3+1 message=" b "`, `4+1 message="last"`}},
		{"empty", Options{Format: "text"}, "", nil},
		{"blank", Options{Format: "text"}, "\n\r\n\n", nil},
		{"defaults", Options{Format: "text", Service: "s", Type: "t", Level: "info"}, "a\n", []string{
			`1+1 service="s" type="t" level="info" message="a"`}},
		{"multiline", Options{Format: "text", Multiline: rx(`^\[`)}, "\npre\n[1\r\n\n\tb\r\n[2\n", []string{
			`2+1 message="pre"`, `3+3 message="[1\r\n\n\tb"`, `6+1 message="[2"`}},
		{"a time is asked for", Options{Format: "text", TsFormat: "unix"}, "5 a\nb\n6 c", []string{
			`1+1 message="5 a" ts=5`, `2+1 refused`, `3+1 message="6 c" ts=6`}},
		{"extract", Options{Format: "text", Level: "none", UserRegex: rx(`u=(\w+)`),
			Extract: rx(`^(?P<level>[A-Z]+) (?P<status>\d+)( (?P<path>/\S*))?`)},
			"WARN 200 /a u=ann\nINFO 404\n?", []string{
				`1+1 level="warn" user="ann" message="WARN 200 /a u=ann" [status]="200" [path]="/a" [level_text]="WARN"`,
				`2+1 level="info" message="INFO 404" [status]="404" [level_text]="INFO"`,
				`3+1 level="none" message="?"`}},
		{"extract the time", Options{Format: "text", TsField: "when", UserField: "who", Extract: rx(`at (?P<when>\S+) by (?P<who>\S+)`)},
			"at 1700000000 by ann\nnothing\nat noon by bob", []string{
				`1+1 user="ann" message="at 1700000000 by ann" ts=1700000000 [when]="1700000000" [who]="ann"`, `2+1 refused`, `3+1 refused`}},
		{"extract the time, else find it", Options{Format: "text", TsFormat: "unix", Extract: rx(`at (?P<ts>\S+)`)},
			"at 7\n8 x", []string{`1+1 message="at 7" ts=7`, `2+1 message="8 x" ts=8`}},
		{"extract the message", Options{Format: "text", Extract: rx(`^(?P<host>\S+) (?P<message>.*)`)}, "h text\nh", []string{
			`1+1 message="text" [host]="h"`, `2+1 message="h"`}},
		{"levels of lines", Options{Format: "ndjson"}, "{\"level\":50}\n{\"severity\":\"WARNING\"}", []string{
			`1+1 level="error" [level_text]="50"`, `2+1 level="warn" [severity]="WARNING"`}},
		{"levels of an array", Options{Format: "json"}, `[{"level":50},{"levelname":"INFO"}]`, []string{
			`1+1 level="error" [level_text]="50"`, `1+1 level="info" [levelname]="INFO"`}},
		{"levels of logfmt", Options{Format: "logfmt"}, "lvl=EROR level=\nlvl=eror level=WARN\nlvl=dbug\nlvl=err", []string{
			`1+1 level="error" [lvl]="EROR"`, `2+1 level="warn" [lvl]="eror" [level_text]="WARN"`, `3+1 level="debug" [lvl]="dbug"`, `4+1 level="error" [lvl]="err"`}},
		{"ndjson", Options{Format: "ndjson", Level: "info"},
			"\xef\xbb\xbf{\"msg\":\"a\",\"n\":1}\r\n  \n{\"level\":\"x\"}\n{\n[]\n{\"ts\":5}", []string{
				`1+1 level="info" message="a" [n]="1"`, `3+1 level="x"`, `4+1 refused`, `5+1 refused`, `6+1 level="info" ts=5`}},
		{"ndjson times", Options{Format: "ndjson", TsFormat: "unix_ms"}, `{"time":"5000"}` + "\n{\"@timestamp\":7000}\n{}", []string{
			`1+1 ts=5`, `2+1 ts=7`, `3+1 refused`}},
		{"logfmt", Options{Format: "logfmt"}, "ts=1700000000 level=warn msg=\"a \\\"b\\\"\" user_id=u k=v k=w bare\na=\"\n=x\nerr=é", []string{
			`1+1 level="warn" user="u" message="a \"b\"" ts=1700000000 [k]="v" [k#2]="w" [bare]=""`,
			`2+1 refused`, `3+1 refused`, `4+1 [err]="é"`}},
		{"logfmt among other lines", Options{Format: "logfmt"}, "level=error msg=panic\ngoroutine 1 [running]:\nmain.main()\nmsg='two words'\nmsg='one'\n", []string{
			`1+1 level="error" message="panic"`, `2+1 message="goroutine 1 [running]:"`, `3+1 message="main.main()"`, `4+1 refused`, `5+1 message="'one'"`}},
		{"logfmt fields", Options{Format: "logfmt", TsField: "when", UserField: "who"}, "when=2023-11-14T22:13:20Z who=ann\nwho=bob\nwhen=x", []string{
			`1+1 user="ann" ts=1700000000 [when]="2023-11-14T22:13:20Z" [who]="ann"`, `2+1 refused`, `3+1 refused`}},
		{"csv", Options{Format: "csv"},
			"\xef\xbb\xbfname,user_id,,name\r\n\r\na,u,1,b\r\n\"x, \"\"y\"\"\nz\",,,\nonly\nq,r,s,t,u\nend,,,", []string{
				`3+1 user="u" [name]="a" [column_3]="1" [name#2]="b"`, `4+2 [name]="x, \"y\"\nz"`, `6+1 refused`, `7+1 refused`, `8+1 [name]="end"`}},
		{"csv, a quote never closed", Options{Format: "csv"}, "a,b\n1,2\n\"3,4\n5,6\n7,8", []string{
			`2+1 [a]="1" [b]="2"`, `3+1 refused`, `4+1 [a]="5" [b]="6"`, `5+1 [a]="7" [b]="8"`}},
		{"csv, quotes out of place", Options{Format: "csv"}, "a\nx\"y\nz\"w\nok\n", []string{`2+1 refused`, `3+1 refused`, `4+1 [a]="ok"`}},
		{"csv, two bad quotes far apart", Options{Format: "csv"}, "a\n\"x\nfine\ny\"z\nok\n", []string{
			`2+1 refused`, `3+1 [a]="fine"`, `4+1 refused`, `5+1 [a]="ok"`}},
		{"csv without rows", Options{Format: "csv"}, "a,b\n", nil},
		{"csv without a header", Options{Format: "csv"}, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(iotest.OneByteReader(strings.NewReader(c.input)), c.opts)
			var got []string
			for {
				rec, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, show(rec))
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		opts  Options
		input string
		want  error
		text  string
	}{
		{Options{Format: "text", TsFormat: "clf"}, "x\n", ErrNoTime, "format clf looks like 17/May/2015:10:05:03 +0000"},
		{Options{Format: "ndjson"}, "{\"a\":}\n", schemas.ErrNotJSON, "at byte 6 of 6"},
		{Options{Format: "ndjson", TsField: "at"}, "{}\n", schemas.ErrJSONEvent, `no "at"`},
		{Options{Format: "ndjson", TsField: "at", TsFormat: "unix"}, `{"at":"noon"}`, schemas.ErrJSONEvent, `"at": "noon" is not a time of format unix`},
		{Options{Format: "logfmt"}, "a=\"b\n", ErrSyntax, "logfmt"},
		{Options{Format: "logfmt"}, "a='b c'\n", ErrSyntax, "the value of a begins with ', and logfmt quotes with \""},
		{Options{Format: "logfmt", TsField: "at"}, "goroutine 1 [running]:\n", ErrField, `no "at"`},
		{Options{Format: "csv"}, "a,b\n1\n", ErrSyntax, "1 cells, the header has 2"},
		{Options{Format: "csv", TsField: "a", TsFormat: "date"}, "a,b\n,2\n", ErrField, `no "a"`},
		{Options{Format: "csv", TsFormat: "date"}, "a,b\n1,2\n", ErrNoTime, "date"},
		{Options{Format: "csv"}, "a\nb\"\n", ErrSyntax, "bare \""},
		{Options{Format: "text", MaxRecordBytes: 10}, "01234567890\n", ErrTooLong, "11 bytes, the limit is 10"},
		{Options{Format: "text", MaxRecordBytes: 10, Multiline: regexp.MustCompile("x")}, "0123\n5678\n0\n", ErrTooLong, "11 bytes, the limit is 10"},
	} {
		rec, err := NewReader(strings.NewReader(c.input), c.opts).Next()
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(rec.Err, c.want) || !strings.Contains(rec.Err.Error(), c.text) {
			t.Errorf("%q: got %v, want %v with %q", c.input, rec.Err, c.want, c.text)
		}
		if !reflect.DeepEqual(rec.Event, schemas.Event{}) {
			t.Errorf("%q: a refused record has an event", c.input)
		}
	}
}

func TestHeaderErrors(t *testing.T) {
	for _, c := range []struct {
		opts        Options
		input, text string
	}{
		{Options{Format: "csv", TsField: "when"}, "a,b\n1,2\n", `it has no column "when", it has a, b`},
		{Options{Format: "csv", UserField: "who"}, "a,b\n1,2\n", `no column "who"`},
		{Options{Format: "csv"}, "a\"b\n1\n", "malformed"},
	} {
		r := NewReader(strings.NewReader(c.input), c.opts)
		for range 2 {
			if _, err := r.Next(); !errors.Is(err, ErrHeader) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%q: got %v, want %q", c.input, err, c.text)
			}
		}
	}
}

// A record of exactly the bound is read; one byte more is refused with its
// size, costs no more memory than the bound, and the next one is read again.
func TestTooLong(t *testing.T) {
	const limit = DefaultMaxRecordBytes
	huge := strings.Repeat("x", 3*limit)
	for _, format := range []string{"text", "logfmt", "csv"} {
		input := "h\n" + strings.Repeat("x", limit) + "\n" + strings.Repeat("x", limit+1) + "\n" + huge + "\nok"
		r := NewReader(strings.NewReader(input), Options{Format: format})
		if format != "csv" {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []string{"", fmt.Sprintf("%d bytes, the limit is %d", limit+1, limit), fmt.Sprintf("%d bytes", 3*limit), ""} {
			rec, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if rec.Line != i+2 || len(rec.Raw) > limit+2 {
				t.Errorf("%s: line %d with %d bytes", format, rec.Line, len(rec.Raw))
			}
			if (rec.Err == nil) != (want == "") || rec.Err != nil && (!errors.Is(rec.Err, ErrTooLong) || !strings.Contains(rec.Err.Error(), want)) {
				t.Errorf("%s line %d: %v, want %q", format, rec.Line, rec.Err, want)
			}
		}
	}
	// An open quote swallows no more than the bound.
	recs := readAll(t, []byte("h\n\"open\n"+strings.Repeat(strings.Repeat("y", 99)+"\n", 10000)), Options{Format: "csv"})
	if len(recs) != 10001 || recs[0].Err == nil || !errors.Is(recs[0].Err, ErrTooLong) || recs[1].Err != nil {
		t.Errorf("%d records, the first %v", len(recs), recs[0].Err)
	}
}

// When the input fails, what was begun is not passed off as a record.
func TestInputFails(t *testing.T) {
	broken := errors.New("broken pipe")
	for _, o := range []Options{{Format: "text"}, {Format: "text", Multiline: regexp.MustCompile("^x")}, {Format: "csv"}} {
		r := NewReader(io.MultiReader(strings.NewReader("a\nx1\nx2 half"), iotest.ErrReader(broken)), o)
		for {
			rec, err := r.Next()
			if err == nil {
				if strings.Contains(string(rec.Raw), "half") {
					t.Errorf("%s: half a record was returned", o.Format)
				}
				continue
			}
			if !errors.Is(err, broken) || !strings.Contains(err.Error(), "after line 2") {
				t.Errorf("%s: %v", o.Format, err)
			}
			break
		}
	}
}

// Any lines come back as they are, wherever the reader's buffer ends.
func TestLinesSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SliceOfN(rapid.Byte().Filter(func(b byte) bool { return b != '\n' && b != '\r' }), 1, 50)).Draw(t, "lines")
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
		recs := readAll(t, bytes.Join(lines, []byte(end)), Options{Format: "text"})
		if len(recs) != len(lines) {
			t.Fatalf("%d records of %d lines", len(recs), len(lines))
		}
		for i, rec := range recs {
			if rec.Event.Message != string(lines[i]) {
				t.Fatalf("got %q, want %q", rec.Event.Message, lines[i])
			}
		}
	})
}

// Whatever the bytes and the format: no panic, an end, and every line in
// exactly one record; of a JSON document, no record before the one above it.
func FuzzNext(f *testing.F) {
	for i, s := range []string{
		"a\nb\r\n\n[c\n", `{"a":1}` + "\n{", "a=b c=\"d\"\n=", "a,b\n1,\"2\n3\"\n\"", "Mar 27 13:06:56 x\n1700000000", "h\n\"\n\"\"\n\"x", "\xef\xbb\xbf\xff\n\r",
	} {
		f.Add([]byte(s), uint8(i))
	}
	f.Fuzz(func(t *testing.T, input []byte, kind uint8) {
		o := Options{Format: []string{FormatText, FormatNDJSON, FormatLogfmt, FormatCSV}[kind%4], MaxRecordBytes: 16, Now: now}
		if o.Format == FormatNDJSON && (kind&4 != 0 || bytes.HasPrefix(bytes.TrimLeft(bytes.TrimPrefix(input, []byte("\xef\xbb\xbf")), " \t\r\n\x1e"), []byte("["))) {
			if o.Format = FormatJSON; kind&8 != 0 {
				o.Records = "a.b"
			}
			r, line := NewReader(bytes.NewReader(input), o), 1
			for n := 0; ; n++ {
				rec, err := r.Next()
				if err != nil {
					return
				}
				if rec.Line < line || rec.Lines < 1 || len(rec.Raw) > o.MaxRecordBytes || n > len(input) {
					t.Fatalf("record %d: %+v behind line %d", n, rec, line)
				}
				line = rec.Line + rec.Lines - 1
			}
		}
		if o.Format == FormatText && kind&4 != 0 {
			o.Multiline = regexp.MustCompile(`^\[`)
		}
		if f := append(TsFormatNames(), ""); kind&8 != 0 {
			o.TsFormat = f[int(kind>>4)%len(f)]
		}
		r := NewReader(bytes.NewReader(input), o)
		if _, err := r.Next(); errors.Is(err, ErrHeader) {
			return
		}
		readAll(t, input, o)
	})
}

func BenchmarkText(b *testing.B) {
	input := []byte(strings.Repeat("[2016-12-19 16:31:47,437] INFO [Controller 0]: Controller starting up (kafka.controller.KafkaController)\n", 1000))
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(input), Options{Format: "text", Multiline: regexp.MustCompile(`^\[`), TsFormat: "log4j"})
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
}

// What Stop returns ends the reading between records, and within a long one.
func TestReadingStops(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	expression := regexp.MustCompile(`(nothing of it)`)
	for name, o := range map[string]Options{
		"extract":   {Extract: regexp.MustCompile(`(?P<a>nothing of it)`)},
		"user":      {UserRegex: expression},
		"multiline": {Multiline: expression},
		"none":      {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, line := range []string{"short\n", strings.Repeat("x", 200_000) + "\n"} {
				asked := 0
				o.Format, o.Stop = FormatText, func() error {
					if asked++; asked > 3 {
						return enough
					}
					return nil
				}
				r, records := NewReader(strings.NewReader(strings.Repeat(line, 50)), o), 0
				var err error
				for ; err == nil; records++ {
					_, err = r.Next()
				}
				if !errors.Is(err, enough) || records > 4 || asked != 4 {
					t.Errorf("lines of %d bytes: %v after %d records and %d questions", len(line), err, records, asked)
				}
				if _, err := r.Next(); !errors.Is(err, enough) {
					t.Errorf("read again: %v", err)
				}
			}
		})
	}
}
