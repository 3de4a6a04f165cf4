package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/schemas"
)

// input is a way into the gateway, and how a client of it writes events.
type input struct {
	name, what  string
	bar         float64 // of its rate against a producer's; 0: none
	contentType string
	// path on the listener, which is one of listeners.
	listener, path string
	// keyed requests are stored once. Each gets a key of its own, since the bench sends
	// the same bodies again and again.
	keyed bool
	// good is in the answer to a request of which every event was taken.
	good   string
	encode func(events []schemas.Event) ([]byte, error)
}

// Listeners of a gateway, by the flag that names the address.
const (
	listenHTTP    = "http"
	listenOTLP    = "otlp-http"
	listenElastic = "elastic"
)

// inputsOf are the inputs that are measured, for one topic.
func inputsOf(topic string) []input {
	return []input{
		{name: "otlp", what: "OTLP protobuf over HTTP", bar: 0.5, contentType: "application/x-protobuf", listener: listenOTLP, path: "/t/" + topic + "/v1/logs", keyed: true, encode: encodeOTLP},
		{name: "ndjson", what: "NDJSON", bar: 0.4, contentType: "application/x-ndjson", listener: listenHTTP, path: "/v1/topics/" + topic + "/events", good: `"refused_total":0`, encode: encodeNDJSON},
		{name: "bulk", what: "Elastic's bulk API", bar: 0.3, contentType: "application/x-ndjson", listener: listenElastic, path: "/" + topic + "/_bulk", good: `"errors":false`, encode: encodeBulk},
		{name: "otlp_json", what: "OTLP JSON", contentType: "application/json", listener: listenOTLP, path: "/t/" + topic + "/v1/logs", keyed: true, encode: encodeOTLPJSON},
		{name: "loki", what: "Loki's push API, JSON", contentType: "application/json", listener: listenHTTP, path: "/t/" + topic + "/loki/api/v1/push", encode: encodeLoki},
	}
}

// bodies are n requests of each events.
func (in *input) bodies(n, each, eventBytes int) ([][]byte, error) {
	gen, at := newGenerator(1, eventBytes), time.Now()
	out := make([][]byte, n)
	for i := range out {
		events := make([]schemas.Event, each)
		for k := range events {
			events[k] = gen.event()
			events[k].Time = at.Add(time.Duration(i*each+k) * time.Microsecond)
			events[k].Attrs = append([]schemas.Attr(nil), events[k].Attrs...)
		}
		var err error
		if out[i], err = in.encode(events); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", in.what, err)
		}
	}
	return out, nil
}

// document is an event as people write it in JSON.
func document(ev *schemas.Event, timeKey string) map[string]any {
	d := map[string]any{
		timeKey: ev.Time.UTC().Format(time.RFC3339Nano), "level": ev.Level, "service": ev.Service, "type": ev.Type, "user_id": ev.UserID, "message": ev.Message,
	}
	for i := range ev.Attrs {
		a := &ev.Attrs[i]
		if d[a.Key] = json.Number(a.Text()); a.Kind() == schemas.KindString {
			d[a.Key] = a.Text()
		}
	}
	return d
}

func encodeNDJSON(events []schemas.Event) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for i := range events {
		if err := e.Encode(document(&events[i], "ts")); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func encodeBulk(events []schemas.Event) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for i := range events {
		b.WriteString("{\"create\":{}}\n")
		if err := e.Encode(document(&events[i], "@timestamp")); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// encodeLoki writes a stream for each level, as its clients do: labels are few.
func encodeLoki(events []schemas.Event) ([]byte, error) {
	type stream struct {
		Labels map[string]string `json:"stream"`
		Values [][2]string       `json:"values"`
	}
	var push struct {
		Streams []*stream `json:"streams"`
	}
	at := map[string]*stream{}
	for i := range events {
		ev := &events[i]
		s := at[ev.Level]
		if s == nil {
			s = &stream{Labels: map[string]string{"level": ev.Level, "service_name": ev.Service}}
			at[ev.Level], push.Streams = s, append(push.Streams, s)
		}
		d := document(ev, "ts")
		for _, key := range []string{"ts", "level", "service"} {
			delete(d, key)
		}
		line, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		s.Values = append(s.Values, [2]string{strconv.FormatInt(ev.Time.UnixNano(), 10), string(line)})
	}
	return json.Marshal(&push)
}

func encodeOTLP(events []schemas.Event) ([]byte, error) { return exportOf(events).MarshalProto() }

func encodeOTLPJSON(events []schemas.Event) ([]byte, error) { return exportOf(events).MarshalJSON() }

var severities = map[string]plog.SeverityNumber{"info": plog.SeverityNumberInfo, "warn": plog.SeverityNumberWarn, "error": plog.SeverityNumberError}

func exportOf(events []schemas.Event) plogotlp.ExportRequest {
	logs := plog.NewLogs()
	r := logs.ResourceLogs().AppendEmpty()
	r.Resource().Attributes().PutStr("service.name", "bench")
	records := r.ScopeLogs().AppendEmpty().LogRecords()
	for i := range events {
		ev := &events[i]
		one := records.AppendEmpty()
		one.SetTimestamp(pcommon.NewTimestampFromTime(ev.Time))
		one.SetSeverityNumber(severities[ev.Level])
		one.SetEventName(ev.Type)
		one.Body().SetStr(ev.Message)
		one.Attributes().PutStr("user.id", ev.UserID)
		for k := range ev.Attrs {
			switch a := &ev.Attrs[k]; a.Kind() {
			case schemas.KindInt64:
				n, _ := strconv.ParseInt(a.Text(), 10, 64)
				one.Attributes().PutInt(a.Key, n)
			case schemas.KindFloat64:
				f, _ := strconv.ParseFloat(a.Text(), 64)
				one.Attributes().PutDouble(a.Key, f)
			default:
				one.Attributes().PutStr(a.Key, a.Text())
			}
		}
	}
	return plogotlp.NewExportRequestFromLogs(logs)
}
