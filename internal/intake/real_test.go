package intake

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
)

// readAll returns every record and checks that each line is in exactly one.
func readAll(t rapid.TB, input []byte, o Options) []Record {
	t.Helper()
	r := NewReader(bytes.NewReader(input), o)
	var recs []Record
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		rec.Raw = bytes.Clone(rec.Raw)
		recs = append(recs, rec)
	}
	lines := r.blank
	if r.csv != nil {
		lines++ // the header is one in all of them
	}
	for i, rec := range recs {
		if i > 0 && rec.Line < recs[i-1].Line+recs[i-1].Lines {
			t.Fatalf("record %d begins at line %d, the one before at %d has %d lines", i, rec.Line, recs[i-1].Line, recs[i-1].Lines)
		}
		lines += rec.Lines
	}
	if want := countLines(input); lines != want || r.Lines() != want {
		t.Fatalf("%d lines accounted for, %d read, the input has %d", lines, r.Lines(), want)
	}
	return recs
}

func countLines(b []byte) int {
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

func attr(e *schemas.Event, key string) string {
	for i := range e.Attrs {
		if e.Attrs[i].Key == key {
			return e.Attrs[i].Text()
		}
	}
	return ""
}

// now is a clock a year and more after the newest real file.
var now = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func TestRealFiles(t *testing.T) {
	rx := regexp.MustCompile
	bracket := rx(`^\[`)
	for _, c := range []struct {
		file        string
		opts        Options
		records     int
		first, last string // time of the first record, of the last one
		months      int
		user        string // of the first record
	}{
		{"web-access-apache.log.gz", Options{Format: FormatText, TsFormat: "clf", UserRegex: rx(`^(\S+) `)},
			10000, "2015-05-17T10:05:03Z", "2015-05-20T21:05:15Z", 1, "83.149.9.216"},
		{"auth-syslog.log", Options{Format: FormatText, TsFormat: "syslog", Year: 2019},
			7121, "2019-03-27T13:06:56Z", "2019-04-20T14:14:29Z", 2, ""},
		{"auth-syslog.log", Options{Format: FormatText, TsFormat: "syslog", Now: now},
			7121, "2026-03-27T13:06:56Z", "2026-04-20T14:14:29Z", 2, ""},
		{"audit-cloudtrail.jsonl.gz", Options{Format: FormatNDJSON, TsField: "eventTime", UserField: "userIdentity.userName"},
			1220, "2023-07-10T11:42:36Z", "2023-07-10T12:37:50Z", 1, "benjamin"},
		{"app-kafka-broker0-server.log", Options{Format: FormatText, Multiline: bracket, TsFormat: "log4j"},
			2496, "2016-12-19T16:31:46.143Z", "2016-12-20T00:11:11.219Z", 1, ""},
		{"app-kafka-broker0-state-change-16h.log", Options{Format: FormatText, Multiline: bracket, TsFormat: "log4j"},
			3405, "2016-12-19T16:31:47.999Z", "2016-12-19T16:36:55.996Z", 1, ""},
		{"app-kafka-broker0-controller.log.gz", Options{Format: FormatText, Multiline: bracket, TsFormat: "log4j"},
			2294, "2016-12-19T16:31:47.437Z", "2016-12-20T00:09:03.223Z", 1, ""},
		{"app-laravel-stacktraces.log", Options{Format: FormatText, Multiline: rx(`^\[\d{4}-`), TsFormat: "laravel"},
			82, "2023-05-15T18:19:32Z", "2023-05-15T20:02:50Z", 1, ""},
		{"odd-invalid-utf8.log", Options{Format: FormatText, Multiline: rx(`^\d{4}-`), TsFormat: "2006-01-02T15:04:05"},
			1, "2015-03-12T23:16:52.071Z", "2015-03-12T23:16:52.071Z", 1, ""},
		{"events-github.jsonl.gz", Options{Format: FormatNDJSON, TsField: "created_at", UserField: "actor.login"},
			600, "2015-01-01T01:00:00Z", "2015-01-01T01:04:34Z", 1, "soumith"},
		{"status-nginx-plus.jsonl.gz", Options{Format: FormatNDJSON},
			500, "2015-10-30T23:58:19.322Z", "2015-10-31T00:40:53.399Z", 1, ""},
		{"status-nginx-plus.jsonl.gz", Options{Format: FormatNDJSON, TsField: "timestamp", TsFormat: "unix_ms"},
			500, "2015-10-30T23:58:19.322Z", "2015-10-31T00:40:53.399Z", 1, ""},
		{"events-birdstrikes.csv.gz", Options{Format: FormatCSV, TsField: "Flight Date", TsFormat: "date", UserField: "Aircraft Airline Operator"},
			10000, "1990-01-08T00:00:00Z", "2002-07-25T00:00:00Z", 151, "MILITARY"},
		{"usage-focus-billing.csv", Options{Format: FormatCSV, TsField: "ChargePeriodStart", TsFormat: "datetime", UserField: "SubAccountId"},
			1000, "2024-09-18T22:00:00Z", "", 0, "51738928782"},
		{"metrics/nyc_taxi.csv", Options{Format: FormatCSV, TsFormat: "datetime"},
			10320, "2014-07-01T00:00:00Z", "2015-01-31T23:30:00Z", 7, ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			input := inputtest.File(t, c.file)
			recs := readAll(t, input, c.opts)
			if len(recs) != c.records {
				t.Fatalf("%d records, want %d", len(recs), c.records)
			}
			months := map[schemas.Month]bool{}
			for _, rec := range recs {
				if rec.Err != nil {
					t.Fatalf("line %d: %v", rec.Line, rec.Err)
				}
				ns := rec.Event.Time.UnixNano()
				if err := rec.Event.Validate(ns, now.UnixNano()); err != nil {
					t.Fatalf("line %d: %v", rec.Line, err)
				}
				months[schemas.MonthOf(ns)] = true
				if c.opts.Format == FormatText && rec.Event.Message != string(rec.Raw) {
					t.Fatalf("line %d is not whole", rec.Line)
				}
			}
			first, last := recs[0].Event, recs[len(recs)-1].Event
			if got := first.Time.Format(time.RFC3339Nano); got != c.first {
				t.Errorf("first time %s, want %s", got, c.first)
			}
			if got := last.Time.Format(time.RFC3339Nano); c.last != "" && got != c.last {
				t.Errorf("last time %s, want %s", got, c.last)
			}
			if c.months > 0 && len(months) != c.months {
				t.Errorf("%d months, want %d", len(months), c.months)
			}
			if first.UserID != c.user {
				t.Errorf("user %q, want %q", first.UserID, c.user)
			}
		})
	}
}

// A syslog of two months goes to both.
func TestRealSyslogMonths(t *testing.T) {
	recs := readAll(t, inputtest.File(t, "auth-syslog.log"), Options{Format: FormatText, TsFormat: "syslog", Year: 2019})
	count := map[time.Month]int{}
	for _, rec := range recs {
		count[rec.Event.Time.Month()]++
	}
	if count[time.March] != 4062 || count[time.April] != 3059 {
		t.Errorf("got %v", count)
	}
}

// What is not UTF-8, and the line ends inside a record, stay byte for byte.
func TestRealBytesKept(t *testing.T) {
	input := inputtest.File(t, "odd-invalid-utf8.log")
	recs := readAll(t, input, Options{Format: FormatText, Multiline: regexp.MustCompile(`^\d{4}-`)})
	if got, want := recs[0].Event.Message, strings.TrimSuffix(string(input), "\r\n"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if recs[0].Lines != 6 || utf8.ValidString(recs[0].Event.Message) || !strings.Contains(recs[0].Event.Message, "\xed\xb9\xa4") {
		t.Errorf("got %d lines, %q", recs[0].Lines, recs[0].Event.Message)
	}
	// The same through JSON: raw bytes inside a string.
	line := append(append([]byte(`{"message":"`), "\xed\xb9\xa4"...), `"}`...)
	if recs := readAll(t, line, Options{Format: FormatNDJSON}); recs[0].Event.Message != "\xed\xb9\xa4" {
		t.Errorf("got %+v", recs[0])
	}
}

// Records come out whole: nested fields, cells, and the lines of a trace.
func TestRealFieldsSurvive(t *testing.T) {
	trail := readAll(t, inputtest.File(t, "audit-cloudtrail.jsonl.gz"), Options{Format: FormatNDJSON, TsField: "eventTime", UserField: "userIdentity.userName"})
	users := map[string]int{}
	for _, rec := range trail {
		users[rec.Event.UserID]++
		if attr(&rec.Event, "eventTime") == "" || attr(&rec.Event, "eventID") == "" {
			t.Fatalf("line %d lost its fields", rec.Line)
		}
	}
	if users["bert-jan"] != 1139 || users["benjamin"] != 44 {
		t.Errorf("users %v", users)
	}

	github := readAll(t, inputtest.File(t, "events-github.jsonl.gz"), Options{Format: FormatNDJSON, TsField: "created_at", UserField: "actor.login"})
	// Of events with more than 255 names too.
	topic := schemas.NewTopic("github", schemas.Field{Name: "public", Type: schemas.TypeBool})
	public := 0
	for _, rec := range readAll(t, inputtest.File(t, "events-github.jsonl.gz"), Options{Format: FormatNDJSON, Topic: &topic}) {
		if attr(&rec.Event, "public") == "true" {
			public++
		}
	}
	if public != 600 {
		t.Errorf("public is an attribute of %d of 600 GitHub events", public)
	}
	e := github[0].Event
	for key, want := range map[string]string{"id": "2489395767", "actor.login": "soumith", "repo.name": "soumith/fbcunn", "payload.size": "4", "public": "true"} {
		if got := attr(&e, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if e.Type != "PushEvent" {
		t.Errorf("type is %q", e.Type)
	}

	bills := readAll(t, inputtest.File(t, "usage-focus-billing.csv"), Options{Format: FormatCSV, TsField: "ChargePeriodStart", TsFormat: "datetime"})
	e = bills[0].Event
	if len(e.Attrs) != 44 || attr(&e, "BilledCost") != "0.00000080000" || attr(&e, "AvailabilityZone") != "NULL" {
		t.Errorf("%d attributes: %+v", len(e.Attrs), e.Attrs)
	}

	laravel := readAll(t, inputtest.File(t, "app-laravel-stacktraces.log"), Options{Format: FormatText, Multiline: regexp.MustCompile(`^\[\d{4}-`)})
	traces := 0
	for _, rec := range laravel {
		traces += len(regexp.MustCompile(`(?m)^#\d+ `).FindAllString(rec.Event.Message, -1))
	}
	if traces != 852 {
		t.Errorf("%d trace lines, want 852", traces)
	}
}
