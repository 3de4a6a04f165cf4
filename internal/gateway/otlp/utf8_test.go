package otlp

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
)

// Texts that are not UTF-8 are stored byte by byte and marked, wherever they are. Only names
// are told to the client: what reads events as JSON cannot tell two of them apart.
func TestTextsThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	e, _, srv := serve(t)
	for name, c := range map[string]struct {
		record func(r plog.LogRecord)
		told   bool
		want   func(ev *schemas.Event) bool
	}{
		"a name": {func(r plog.LogRecord) { r.Attributes().PutStr("k\xff", "v") }, true,
			func(ev *schemas.Event) bool { return value(ev, "k\xff") == "v" }},
		"a name in a map": {func(r plog.LogRecord) { r.Attributes().PutEmptyMap("m").PutStr("k\xfe", "v") }, true,
			func(ev *schemas.Event) bool { return value(ev, "m.k\xfe") == "v" }},
		"a value": {func(r plog.LogRecord) { r.Attributes().PutStr("k", "v\xff") }, false,
			func(ev *schemas.Event) bool { return value(ev, "k") == "v\xff" }},
		"a body": {func(r plog.LogRecord) { r.Body().SetStr("b\xff") }, false,
			func(ev *schemas.Event) bool { return ev.Message == "b\xff" }},
		"a body of names": {func(r plog.LogRecord) { r.Body().SetEmptyMap().PutStr("k\xff", "v\xfe") }, false,
			func(ev *schemas.Event) bool { return ev.Message == "{\"k\xff\":\"v\xfe\"}" }},
		"a list": {func(r plog.LogRecord) { r.Attributes().PutEmptySlice("l").AppendEmpty().SetStr("<v\xff>") }, false,
			func(ev *schemas.Event) bool { return value(ev, "l") == "[\"<v\xff>\"]" }},
		"a name beyond the limit": {func(r plog.LogRecord) { r.Attributes().PutStr(strings.Repeat("k", 300)+"\xff", "v") }, false,
			func(ev *schemas.Event) bool {
				return value(ev, schemas.AttrRest) == `{"`+strings.Repeat("k", 300)+"\xff\":\"v\"}"
			}},
	} {
		for _, isJSON := range []bool{false, true} {
			logs := plog.NewLogs()
			list := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
			for _, kind := range []string{"plain", name} {
				one := list.AppendEmpty()
				one.SetTimestamp(1_790_000_000_000_000_000)
				one.SetEventName(kind)
			}
			one := list.At(1)
			c.record(one)
			kind, marshal := typeProto, plogotlp.ExportRequest.MarshalProto
			if isJSON {
				kind, marshal = typeJSON, plogotlp.ExportRequest.MarshalJSON
			}
			body, err := marshal(plogotlp.NewExportRequestFromLogs(logs))
			if err != nil {
				t.Fatal(name, err)
			}
			code, _, answer := post(t, srv.URL+"/v1/logs", kind, body, "Idempotency-Key", name+strconv.FormatBool(isJSON))
			resp := plogotlp.NewExportResponse()
			if isJSON {
				err = resp.UnmarshalJSON(answer)
			} else {
				err = resp.UnmarshalProto(answer)
			}
			said := resp.PartialSuccess().ErrorMessage()
			told := strings.Contains(said, "names of 1 log records are not UTF-8") && strings.Contains(said, schemas.AttrInvalidUTF8)
			if err != nil || code != 200 || resp.PartialSuccess().RejectedLogRecords() != 0 || told != c.told || !told && said != "" {
				t.Errorf("%s, JSON %v: %d %q %v", name, isJSON, code, answer, err)
			}
		}
		stored := 0
		events := e.Events("app")
		for i := range events {
			ev := &events[i]
			mark := value(ev, schemas.AttrInvalidUTF8)
			switch {
			case ev.Type == "plain" && mark != "":
				t.Errorf("%s: another event of the request is marked", name)
			case ev.Type == name && c.want(ev) && mark != "":
				stored++
			case ev.Type == name:
				t.Errorf("%s: stored as %q", name, inputtest.Text(*ev))
			}
		}
		if stored != 2 {
			t.Errorf("%s: %d events are stored and marked, want 2", name, stored)
		}
	}
}

// value is that of an attribute, or "".
func value(ev *schemas.Event, name string) string {
	i := slices.IndexFunc(ev.Attrs, func(a schemas.Attr) bool { return a.Key == name })
	if i < 0 {
		return ""
	}
	return ev.Attrs[i].Text()
}
