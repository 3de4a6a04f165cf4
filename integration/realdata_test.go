package integration

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// content is how many texts there are and the sum of their hashes: the same for
// the same texts in any order.
type content struct{ N, Sum uint64 }

func (c *content) add(s string) {
	h := md5.Sum([]byte(s))
	c.N, c.Sum = c.N+1, c.Sum+binary.LittleEndian.Uint64(h[:8])
}

const sumSQL = "count() AS N, sum(reinterpretAsUInt64(substring(MD5(%s), 1, 8))) AS Sum FROM "

// messagesOf is the content of a topic's messages as ClickHouse has it.
func (e *env) messagesOf(topic string) (c content) {
	e.t.Helper()
	e.content(&c, fmt.Sprintf("SELECT "+sumSQL, "message")+e.table(topic))
	return c
}

// attributesOf is the content of a topic's attributes; those above the limit are
// JSON in one of them.
func (e *env) attributesOf(topic string) (c content) {
	e.t.Helper()
	but := []string{schemas.AttrInvalidUTF8, schemas.AttrRest}
	e.content(&c, fmt.Sprintf("SELECT "+sumSQL, "concat(k, '\\0', v)")+e.table(topic)+
		" ARRAY JOIN mapKeys(attributes) AS k, mapValues(attributes) AS v WHERE k NOT IN ('"+strings.Join(but, "','")+"')")
	var rest []struct{ Text string }
	err := e.hand.Conn().Select(e.t.Context(), &rest, fmt.Sprintf("SELECT attributes['%s'] AS Text FROM %s WHERE Text != ''", schemas.AttrRest, e.table(topic)))
	if err != nil {
		e.t.Fatal(err)
	}
	for _, r := range rest {
		flatten(e.t, &c, "", json.RawMessage(r.Text), nil)
	}
	return c
}

func (e *env) content(c *content, sql string) {
	e.t.Helper()
	if err := e.hand.Conn().QueryRow(e.t.Context(), sql).Scan(&c.N, &c.Sum); err != nil {
		e.t.Fatal(err)
	}
}

// Real files come out of ClickHouse as they went in: every record, every byte of
// it. What they must hold is read from them here a second time, by simpler means.
func TestRealData(t *testing.T) {
	t.Parallel()
	rx := regexp.MustCompile
	one := func(input []byte) (messages, attributes content) { // a line, a message
		for _, line := range strings.Split(strings.TrimSuffix(string(input), "\n"), "\n") {
			messages.add(strings.TrimSuffix(line, "\r"))
		}
		return messages, attributes
	}
	many := func(start string) func([]byte) (content, content) { // a message from each line that matches
		return func(input []byte) (messages, attributes content) {
			text := strings.TrimSuffix(strings.TrimSuffix(string(input), "\n"), "\r")
			at := rx("(?m)"+start).FindAllStringIndex(text, -1)
			for i := range at {
				end := len(text)
				if i+1 < len(at) {
					end = at[i+1][0] - 1
				}
				messages.add(strings.TrimSuffix(text[at[i][0]:end], "\r"))
			}
			return messages, attributes
		}
	}
	objects := func(moved ...string) func([]byte) (content, content) {
		return func(input []byte) (messages, attributes content) {
			for line := range bytes.Lines(input) {
				messages.add("")
				flatten(t, &attributes, "", bytes.TrimSpace(line), moved)
			}
			return messages, attributes
		}
	}
	table := func(moved string) func([]byte) (content, content) { // no quotes in it
		return func(input []byte) (messages, attributes content) {
			lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(input), "\r\n", "\n"), "\n"), "\n")
			names := strings.Split(lines[0], ",")
			for _, line := range lines[1:] {
				messages.add("")
				for i, cell := range strings.Split(line, ",") {
					if cell != "" && names[i] != moved {
						attributes.add(names[i] + "\x00" + cell)
					}
				}
			}
			return messages, attributes
		}
	}
	kafka := intake.Options{Format: intake.FormatText, Multiline: rx(`^\[`), TsFormat: "log4j"}
	for _, c := range []struct {
		topic, file string
		opts        intake.Options
		want        func(input []byte) (messages, attributes content)
		records     uint64
		months      uint64
		users       uint64 // distinct
	}{
		{"web", "web-access-apache.log.gz", intake.Options{Format: intake.FormatText, TsFormat: "clf", UserRegex: rx(`^(\S+) `)}, one, 10_000, 1, 1753},
		{"auth", "auth-syslog.log", intake.Options{Format: intake.FormatText, TsFormat: "syslog", Year: 2019}, one, 7_121, 2, 1},
		{"audit", "audit-cloudtrail.jsonl.gz", intake.Options{Format: intake.FormatNDJSON, TsField: "eventTime", UserField: "userIdentity.userName"}, objects(), 1_220, 1, 0},
		{"kafka_server", "app-kafka-broker0-server.log", kafka, many(`^\[`), 2_496, 1, 1},
		{"kafka_state", "app-kafka-broker0-state-change-16h.log", kafka, many(`^\[`), 3_405, 1, 1},
		{"kafka_controller", "app-kafka-broker0-controller.log.gz", kafka, many(`^\[`), 2_294, 1, 1},
		{"laravel", "app-laravel-stacktraces.log", intake.Options{Format: intake.FormatText, Multiline: rx(`^\[\d{4}-`), TsFormat: "laravel"}, many(`^\[\d{4}-`), 82, 1, 1},
		{"odd", "odd-invalid-utf8.log", intake.Options{Format: intake.FormatText, Multiline: rx(`^\d{4}-`), TsFormat: "2006-01-02T15:04:05"}, many(`^\d{4}-`), 1, 1, 1},
		{"github", "events-github.jsonl.gz", intake.Options{Format: intake.FormatNDJSON, TsField: "created_at", UserField: "actor.login"}, objects("type"), 600, 1, 0},
		{"birds", "events-birdstrikes.csv.gz", intake.Options{Format: intake.FormatCSV, TsField: "Flight Date", TsFormat: "date", UserField: "Aircraft Airline Operator"}, table(""), 10_000, 151, 0},
		{"taxi", "metrics/nyc_taxi.csv", intake.Options{Format: intake.FormatCSV, TsFormat: "datetime"}, table("timestamp"), 10_320, 7, 1},
	} {
		t.Run(c.topic, func(t *testing.T) {
			t.Parallel()
			input := inputtest.File(t, c.file)
			topic := newTopic(c.topic)
			topic.Lanes = 2
			e := start(t, topic)
			e.router()
			e.sink()
			p := e.producer(c.topic)
			r := intake.NewReader(bytes.NewReader(input), c.opts)
			for {
				rec, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil || rec.Err != nil {
					t.Fatalf("line %d: %v %v", rec.Line, err, rec.Err)
				}
				if err := p.Submit(t.Context(), rec.Event, func(err error) {
					if err != nil {
						t.Errorf("line %d: %v", rec.Line, err)
					}
				}); err != nil {
					t.Fatalf("line %d: %v", rec.Line, err)
				}
			}
			e.flush(p)
			e.stored(c.topic, c.records, time.Minute)
			messages, attributes := c.want(input)
			if got := e.messagesOf(c.topic); got != messages {
				t.Errorf("%d messages of sum %d are stored, the file has %d of sum %d", got.N, got.Sum, messages.N, messages.Sum)
			}
			if got := e.attributesOf(c.topic); got != attributes {
				t.Errorf("%d attributes of sum %d are stored, the file has %d of sum %d", got.N, got.Sum, attributes.N, attributes.Sum)
			}
			if got := e.count("SELECT uniqExact(month) FROM %s", e.table(c.topic)); got != c.months {
				t.Errorf("%d months, want %d", got, c.months)
			}
			if got := e.count("SELECT uniqExact(user_id) FROM %s", e.table(c.topic)); c.users > 0 && got != c.users {
				t.Errorf("%d users, want %d", got, c.users)
			}
			e.whole(c.topic, c.records)
			e.verify(c.records)
			if c.topic == "odd" {
				if got := e.count("SELECT countIf(position(message, unhex('EDB9A4')) > 0 AND attributes['%s'] = 'message') FROM %s", schemas.AttrInvalidUTF8, e.table("odd")); got != 1 {
					t.Error("the bytes that are not UTF-8 are gone, or not marked")
				}
			}
			all, _ := e.answer(e.reader(), query.Request{Topic: c.topic, Limit: query.MaxLimit})
			if len(all) != int(c.records) {
				t.Errorf("all pages have %d events, want %d", len(all), c.records)
			}
		})
	}
}

// flatten adds the leaves of a JSON object as attributes are named: nested
// objects joined with dots, arrays and empty objects as compact JSON.
func flatten(t testing.TB, c *content, prefix string, raw json.RawMessage, moved []string) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		t.Fatal(err)
	}
	for name, value := range fields {
		path := prefix + name
		switch {
		case prefix == "" && slices.Contains(moved, name):
		case value[0] == '{' && string(value) != "{}":
			flatten(t, c, path+".", value, moved)
		case value[0] == '"':
			var s string
			if err := json.Unmarshal(value, &s); err != nil {
				t.Fatal(err)
			}
			c.add(path + "\x00" + s)
		case string(value) == "null":
		default:
			var b bytes.Buffer
			if err := json.Compact(&b, value); err != nil {
				t.Fatal(err)
			}
			c.add(path + "\x00" + b.String())
		}
	}
}
