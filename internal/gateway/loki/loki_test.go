package loki

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

var limits = Options{MaxBytes: 1 << 20, MaxEvents: 1000}

func TestRecordedPushes(t *testing.T) {
	for name, want := range map[string]string{
		"pino-loki.1": `
ts 2026-11-20T19:59:28.142Z
level info
service probe
message hello é世😀
  hostname vm
  level:int 30
  time:int 1795204768142
  pid:int 16765
  user u1
  nested.a [1,2]

ts 2026-11-20T19:59:28.142Z
level error
service probe
message boom
  hostname vm
  level:int 50
  time:int 1795204768142
  pid:int 16765
`,
		"winston-loki.1": `
ts 2026-11-20T19:59:32.152Z
level info
service probe
message hello w {"user":"u2","level":"info"}
  user u2
`,
	} {
		t.Run(name, func(t *testing.T) {
			p, err := DecodeJSON(inputtest.Recorded(t, name).Body, limits)
			if err != nil || len(p.Refused) > 0 {
				t.Fatal(err, p.Refused)
			}
			inputtest.Same(t, p.Events, want)
		})
	}
}

func TestDecodeJSON(t *testing.T) {
	for _, c := range []struct{ name, streams, want string }{
		{"labels and metadata", `{"stream":{"job":"j","service_name":"s","level":"WARNING","env":"prod"},
			"values":[["1795204768142000001","plain",{"trace_id":"abc","user_id":"u","n":5}]]}`, `
ts 2026-11-20T19:59:28.142000001Z
level warn
service s
user_id u
trace_id abc
message plain
  n:int 5
  job j
  level_text WARNING
  env prod
`},
		{"a label called message stays beside a plain line", `{"stream":{"message":"m"},"values":[["1","line"]]}`,
			"ts 1970-01-01T00:00:00.000000001Z\nmessage line\n  message m\n"},
		{"a line that only looks like JSON", `{"stream":{},"values":[["1","{not json"]]}`,
			"ts 1970-01-01T00:00:00.000000001Z\nmessage {not json\n"},
		{"an empty line, no labels", `{"values":[["1",""]]}`, "ts 1970-01-01T00:00:00.000000001Z\n"},
		{"bytes that are not UTF-8 stay", "{\"stream\":null,\"values\":[[\"1\",\"a\xffb\"]]}", "ts 1970-01-01T00:00:00.000000001Z\nmessage a\xffb\n"},
		{"a time as a number", `{"stream":{},"values":[[7,"x"]]}`, "ts 1970-01-01T00:00:00.000000007Z\nmessage x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := DecodeJSON([]byte(`{"streams":[`+c.streams+`]}`), limits)
			if err != nil || len(p.Refused) > 0 {
				t.Fatal(err, p.Refused)
			}
			inputtest.Same(t, p.Events, c.want)
		})
	}
}

// A line that is white space alone is a text as any other.
func TestBlankLines(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", " ", " \t\r\n"} {
		quoted, _ := json.Marshal(line)
		p, err := DecodeJSON([]byte(`{"streams":[{"stream":{"a":"b"},"values":[["1","`+string(quoted[1:len(quoted)-1])+`"]]}]}`), Options{MaxBytes: 1 << 20, MaxEvents: 10})
		if err != nil || len(p.Events) != 1 || p.Events[0].Message != line {
			t.Errorf("%q: %+v %v", line, p, err)
		}
	}
}

// All entries of a stream share one text of its labels, however long that is.
func TestLabelsAreHeldOnce(t *testing.T) { // alone: it reads what the heap holds
	const entries = 100
	labels := `{` + strings.Repeat(" ", 1<<20) + `"a":"b"}`
	body := []byte(`{"streams":[{"stream":` + labels + `,"values":[` + strings.TrimSuffix(strings.Repeat(`["1","x"],`, entries), ",") + `]}]}`)
	before, after := runtime.MemStats{}, runtime.MemStats{}
	runtime.GC()
	runtime.ReadMemStats(&before)
	p, err := DecodeJSON(body, Options{MaxBytes: 1 << 20, MaxEvents: entries})
	if err != nil || len(p.Events) != entries || p.Events[entries-1].Attrs[0].Text() != "b" {
		t.Fatalf("%d events: %v", len(p.Events), err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := int64(after.HeapAlloc) - int64(before.HeapAlloc); held > 30<<20 {
		t.Errorf("%d MiB are held by events of %d KiB", held>>20, entries*2>>10)
	}
	runtime.KeepAlive(p)
}

func TestDecodeJSONRefusesEntries(t *testing.T) {
	p, err := DecodeJSON([]byte(`{"streams":[{"stream":{"a":"b"},"values":[["1","good"],["noon","x"],["1"],["1",5],[null,"x"],["1","x",[]],["2","good"]]}]}`), limits)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Events) != 2 || p.Entries != 7 || len(p.Refused) != 5 {
		t.Fatalf("%d events, %d entries, refused: %v", len(p.Events), p.Entries, p.Refused)
	}
	for i, r := range p.Refused {
		if !errors.Is(r.Err, ErrEntry) || r.Entry != i+1 {
			t.Errorf("entry %d: %v", r.Entry, r.Err)
		}
	}
}

func TestDecodeJSONRefusesBodies(t *testing.T) {
	entries := strings.Repeat(`["1","x"],`, limits.MaxEvents) + `["1","x"]`
	labels := strings.Repeat("l", limits.MaxBytes/10)
	for name, c := range map[string]struct {
		body string
		want error
	}{
		"empty":               {``, ErrPush},
		"an array":            {`[]`, ErrPush},
		"no streams":          {`{}`, ErrPush},
		"null streams":        {`{"streams":null}`, ErrPush},
		"cut short":           {`{"streams":[`, ErrPush},
		"too many entries":    {`{"streams":[{"values":[` + entries + `]}]}`, ErrTooLarge},
		"labels that grow":    {`{"streams":[{"stream":{"l":"` + labels + `"},"values":[` + entries[len(entries)-119:] + `]}]}`, ErrTooLarge},
		"streams of a string": {`{"streams":"x"}`, ErrPush},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeJSON([]byte(c.body), limits); !errors.Is(err, c.want) {
				t.Errorf("%.200v, expected %v", err, c.want)
			}
		})
	}
}

type entry struct {
	seconds, nanos uint64
	line           string
	metadata       []rawjson.Pair
}

// protobuf is a push of one stream, not compressed.
func protobuf(labels string, entries ...entry) []byte {
	var stream []byte
	for _, e := range entries {
		at := protowire.AppendVarint(protowire.AppendTag(nil, timeSeconds, protowire.VarintType), e.seconds)
		at = protowire.AppendVarint(protowire.AppendTag(at, timeNanos, protowire.VarintType), e.nanos)
		b := protowire.AppendBytes(protowire.AppendTag(nil, entryTime, protowire.BytesType), at)
		b = protowire.AppendString(protowire.AppendTag(b, entryLine, protowire.BytesType), e.line)
		for _, m := range e.metadata {
			pair := protowire.AppendString(protowire.AppendTag(nil, pairName, protowire.BytesType), m.Key)
			pair = protowire.AppendString(protowire.AppendTag(pair, pairValue, protowire.BytesType), m.Value)
			b = protowire.AppendBytes(protowire.AppendTag(b, entryMetadata, protowire.BytesType), pair)
		}
		stream = protowire.AppendBytes(protowire.AppendTag(stream, streamEntries, protowire.BytesType), b)
	}
	stream = protowire.AppendString(protowire.AppendTag(stream, streamLabels, protowire.BytesType), labels)
	stream = protowire.AppendVarint(protowire.AppendTag(stream, 3, protowire.VarintType), 77) // hash
	return protowire.AppendBytes(protowire.AppendTag(nil, pushStreams, protowire.BytesType), stream)
}

func TestDecodeProtobuf(t *testing.T) {
	for _, c := range []struct {
		name, labels string
		entry        entry
		want         string
	}{
		{"labels and metadata", `{app="web", level="info"}`, entry{1795204768, 5, "hello", []rawjson.Pair{{Key: "trace_id", Value: "t"}, {Key: "level", Value: "info"}}},
			"ts 2026-11-20T19:59:28.000000005Z\nlevel info\nservice web\ntrace_id t\nmessage hello\n"},
		{"a line of JSON", `{}`, entry{1795204768, 0, `{"msg":"m","n":1}`, nil},
			"ts 2026-11-20T19:59:28Z\nmessage m\n  n:int 1\n"},
		{"labels whose values are not escaped", `{app="a"b"}`, entry{1795204768, 0, "x", nil},
			"ts 2026-11-20T19:59:28Z\nmessage x\n  loki.labels {app=\"a\"b\"}\n"},
		{"escaped and raw values", "{a=\"q\\\"\\n\",b=`r\\n`,}", entry{1795204768, 0, "x", nil},
			"ts 2026-11-20T19:59:28Z\nmessage x\n  a q\"\n\n  b r\\n\n"},
		{"no labels", ``, entry{1795204768, 0, "x", nil}, "ts 2026-11-20T19:59:28Z\nmessage x\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := DecodeProtobuf(s2.EncodeSnappy(nil, protobuf(c.labels, c.entry)), limits)
			if err != nil || len(p.Refused) > 0 {
				t.Fatal(err, p.Refused)
			}
			inputtest.Same(t, p.Events, c.want)
		})
	}
}

func TestDecodeProtobufRefuses(t *testing.T) {
	good := protobuf(`{a="b"}`, entry{1, 1, "x", nil})
	for name, c := range map[string]struct {
		body []byte
		want error
	}{
		"not snappy":    {[]byte(`{"streams":[]}`), ErrPush},
		"empty":         {nil, ErrPush},
		"cut short":     {s2.EncodeSnappy(nil, good[:len(good)-3]), ErrPush},
		"nanoseconds":   {s2.EncodeSnappy(nil, protobuf(`{}`, entry{1, 1e9, "x", nil})), ErrPush},
		"a bomb":        {s2.EncodeSnappy(nil, make([]byte, limits.MaxBytes+1)), ErrTooLarge},
		"a bomb's head": {[]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, ErrTooLarge},
		"metadata":      {s2.EncodeSnappy(nil, protobuf(`{}`, entry{1, 1, "x", make([]rawjson.Pair, maxPairs+1)})), ErrPush},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeProtobuf(c.body, limits); !errors.Is(err, c.want) {
				t.Errorf("%v, expected %v", err, c.want)
			}
		})
	}
}

func TestParseLabels(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "[]", `{ a = "b" , c="d" }`: "[{a b} {c d}]", `{a="x,y=}"}`: "[{a x,y=}}]",
		`{a="b"`: "", `a="b"`: "", `{a=b}`: "", `{a='b'}`: "", `{="b"}`: "", `{a="b" c="d"}`: "", `{`: "", ``: "", `{a="b"}}`: "", `{,}`: "",
	} {
		pairs, ok := parseLabels(text)
		if got := fmt.Sprint(pairs); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s %v, expected %q", text, got, ok, want)
		}
	}
}

// Whatever comes, the counts agree, the limits hold, and nothing sets an id.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"streams":[{"stream":{"level":"info","app":"x"},"values":[["1795204768142000000","{\"msg\":\"m\"}",{"a":"b"}],["x",1]]}]}`))
	f.Add(s2.EncodeSnappy(nil, protobuf(`{a="b",level="info"}`, entry{1795204768, 5, "hello", []rawjson.Pair{{Key: "k", Value: "v"}}})))
	f.Add(protobuf(`{a="b"}`, entry{1795204768, 5, "hello", nil}))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, decode := range []func([]byte, Options) (Push, error){
			DecodeJSON, DecodeProtobuf,
			func(b []byte, o Options) (Push, error) { return DecodeProtobuf(s2.EncodeSnappy(nil, b), o) },
		} {
			p, err := decode(body, limits)
			if err != nil && !errors.Is(err, ErrPush) && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			if len(p.Events)+len(p.Refused) != p.Entries || p.Entries > limits.MaxEvents {
				t.Fatalf("%d events, %d refused, %d entries", len(p.Events), len(p.Refused), p.Entries)
			}
			now := time.Now().UnixNano()
			for i := range p.Events {
				ev := &p.Events[i]
				err := ev.Validate(now, now)
				if !ev.ID.IsZero() || err != nil && !errors.Is(err, schemas.ErrEventTooLarge) {
					t.Fatalf("id %s: %v", ev.ID, err)
				}
			}
		}
	})
}
