package otlp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
)

// asOurs is what is read of each record of a request, as text.
func asOurs(body []byte) (lines []string, err error) {
	logs, err := Parse(body, false)
	if err != nil {
		return nil, err
	}
	var r record
	err = eachIn(logs.body.wire(), requestResources, func(resource wire) error {
		return eachIn(resource, scopesOf(resource), func(scope wire) error {
			return eachIn(scope, scopeRecords, func(one wire) error {
				if err := r.read(one); err != nil {
					return err
				}
				line := fmt.Sprint(r.time, r.observed, r.severity, r.dropped, r.flags, r.traceID, r.spanID) + fmt.Sprintf(" %q %q %s %q", r.severityText, r.event, r.body.kind, r.body.asText())
				for _, a := range r.attrs {
					line += fmt.Sprintf(" %q=%s %q", a.key, a.value.kind, a.value.asText())
				}
				lines = append(lines, line)
				return nil
			})
		})
	})
	return lines, err
}

// asTheirs is the same as OpenTelemetry's decoder reads it.
func asTheirs(body []byte) (lines []string, err error) {
	if err := checkProto(body, exportRequest); err != nil {
		return nil, err
	}
	req := plogotlp.NewExportRequest()
	if err := req.UnmarshalProto(body); err != nil {
		return nil, err
	}
	for _, rl := range req.Logs().ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				line := fmt.Sprint(uint64(r.Timestamp()), uint64(r.ObservedTimestamp()), int32(r.SeverityNumber()), r.DroppedAttributesCount(), uint32(r.Flags()), r.TraceID(), r.SpanID()) +
					fmt.Sprintf(" %q %q %s %q", r.SeverityText(), r.EventName(), r.Body().Type(), textOf(r.Body()))
				for name, v := range r.Attributes().All() {
					line += fmt.Sprintf(" %q=%s %q", name, v.Type(), textOf(v))
				}
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// same holds what is read of a request to what OpenTelemetry's decoder makes of it.
func same(t interface{ Fatalf(string, ...any) }, body []byte) {
	theirs, err := asTheirs(body)
	if err != nil {
		_, _ = asOurs(body) // which must not end the process
		return
	}
	ours, err := asOurs(body)
	if err != nil || strings.Join(ours, "\n") != strings.Join(theirs, "\n") {
		t.Fatalf("%x: %v\n%s\nOpenTelemetry's decoder reads\n%s", body, err, strings.Join(ours, "\n"), strings.Join(theirs, "\n"))
	}
}

// Records are read as OpenTelemetry's decoder reads them, also of requests that are nearly good.
func TestReadAsOpenTelemetry(t *testing.T) {
	t.Parallel()
	good, err := everything().MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	same(t, good)
	if lines, err := asOurs(good); err != nil || len(lines) != 1 {
		t.Fatalf("%q, %v", lines, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		body := append([]byte(nil), good...)
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			body[rapid.IntRange(0, len(body)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		}
		same(t, body)
	})
}

func FuzzReadAsOpenTelemetry(f *testing.F) {
	body, _ := everything().MarshalProto()
	f.Add(body)
	deep, _ := nested(3)
	f.Add(deep)
	f.Add(oldScopes(f, body))
	f.Fuzz(func(t *testing.T, body []byte) { same(t, body) })
}

// oldScopes is a request with its scopes under the number that old exporters give them.
func oldScopes(t testing.TB, request []byte) []byte {
	t.Helper()
	b := body{request, string(request)}
	var old []byte
	err := eachIn(b.wire(), requestResources, func(resource wire) error {
		old = without(resource, resourceScopes)
		return eachIn(resource, resourceScopes, func(scope wire) error {
			old = append(old, tagged(resourceOldScopes, scope.left())...)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return tagged(requestResources, old)
}

// Records of old exporters are read, and counted.
func TestOldScopes(t *testing.T) {
	t.Parallel()
	good, err := everything().MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	old := oldScopes(t, good)
	same(t, old)
	inputtest.Same(t, decoded(t, old, false), everythingText)
	if logs, err := Parse(old, false); err != nil || logs.Len() != 1 {
		t.Errorf("%d records, %v", logs.Len(), err)
	}
	deep, _ := nested(2_000)
	if err := checkProto(oldScopes(t, deep), exportRequest); !errors.Is(err, errTooDeep) {
		t.Errorf("deep values below the old number: %v", err)
	}
	if err := checkProto(oldScopes(t, deep), metricsRequest); err != nil { // none of its values are metrics
		t.Errorf("a request of logs as metrics: %v", err)
	}
}

// What no event can have is refused, record by record, in little time; the others are taken.
func TestHostileAttributes(t *testing.T) {
	t.Parallel()
	attrs := func(n int, name func(i int) string) (b []byte) {
		for i := range n {
			b = append(b, tagged(recordAttribute, append(tagged(attributeKey, []byte(name(i))), tagged(attributeValue, nil)...))...)
		}
		return b
	}
	alike := func(int) string { return "a" }
	for name, c := range map[string]struct {
		resource, record []byte
		refused          bool
	}{
		"names alike":           {nil, attrs(5_000, alike), false},
		"many names alike":      {nil, attrs(30_000, alike), true},
		"names beyond an event": {nil, attrs(20_000, strconv.Itoa), true},
		"names beyond reading":  {nil, attrs(200_000, alike), true},
		"a resource beyond":     {tagged(1, bytes.ReplaceAll(attrs(40_000, strconv.Itoa), []byte{recordAttribute<<3 | 2}, []byte{1<<3 | 2})), nil, true},
	} {
		good := tagged(scopeRecords, tagged(recordBody, tagged(valueText, []byte("good"))))
		scope := tagged(resourceScopes, append(tagged(scopeRecords, c.record), good...))
		request := tagged(requestResources, append(c.resource, scope...))
		taken, refused := 0, 0
		err := decode(request, false, nil, func(ev *schemas.Event, err error) {
			switch {
			case err == nil && ev.Bytes() <= schemas.MaxEventBytes:
				taken++
			case err == nil || errors.Is(err, schemas.ErrTooManyAttrs):
				refused++
			default:
				t.Errorf("%s: %v", name, err)
			}
		})
		want := 0
		if c.refused {
			want = 1
		}
		if c.resource != nil {
			want = 2
		}
		if err != nil || refused != want || taken != 2-want {
			t.Errorf("%s: %d taken, %d refused, %v", name, taken, refused, err)
		}
	}
}

// Texts that rules drop or cut may be larger than an event: whether it fits is decided after.
func TestLargeTexts(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("x"), 700<<10)
	attribute := append(tagged(attributeKey, []byte("after")), tagged(attributeValue, tagged(valueText, long))...)
	record := append(tagged(recordBody, tagged(valueText, long)), tagged(recordAttribute, attribute)...)
	ev := decoded(t, tagged(requestResources, tagged(resourceScopes, tagged(scopeRecords, record))), false)[0]
	if len(ev.Message) != len(long) || len(value(&ev, "after")) != len(long) {
		t.Errorf("%d and %d bytes, expected %d", len(ev.Message), len(value(&ev, "after")), len(long))
	}
}

// Names that come twice are both kept, also those that are too long or empty.
func TestNamesTwice(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 300)
	var record []byte
	for i, name := range []string{"", "", long, long, "a", "a", "a#2"} {
		value := tagged(attributeValue, tagged(valueText, []byte{'0' + byte(i)}))
		record = append(record, tagged(recordAttribute, append(tagged(attributeKey, []byte(name)), value...))...)
	}
	ev := decoded(t, tagged(requestResources, tagged(resourceScopes, tagged(scopeRecords, record))), false)[0]
	got := inputtest.Text(ev)
	for i := range 7 {
		if !strings.Contains(got, strconv.Itoa(i)) {
			t.Errorf("%d is lost:\n%s", i, got)
		}
	}
}

// Resources and scopes without records cost no more than a look.
func TestManyScopesWithoutRecords(t *testing.T) {
	t.Parallel()
	scopes := strings.Repeat("\x12\x00", 1<<20) // ResourceLogs.scope_logs, empty
	n := 0
	err := decode(tagged(requestResources, []byte(scopes)), false, nil, func(*schemas.Event, error) { n++ })
	if err != nil || n != 0 {
		t.Errorf("%d events, %v", n, err)
	}
}

// A bad trace or span id refuses its record, and not the request.
func TestBadIDRefusesItsRecordAlone(t *testing.T) {
	t.Parallel()
	record := func(message, ids string) string {
		return `{"timeUnixNano":"1790000000000000000","body":{"stringValue":"` + message + `"}` + ids + `}`
	}
	const good = `,"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174"`
	asJSON := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[` + record("a", good) + "," + record("b", `,"traceId":"zz"`) + `]},{"logRecords":[` +
		record("c", `,"spanId":"eee19b7ec3c1b1"`) + "," + record("d", `,"traceId":7`) + "," + record("e", good) + `]}]}]}`
	id := func(number protowire.Number, n int) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), make([]byte, n))
	}
	var records []byte
	for _, ids := range [][]byte{id(recordTraceID, 16), id(recordTraceID, 3), id(recordSpanID, 16), id(recordSpanID, 8)} {
		records = protowire.AppendBytes(protowire.AppendTag(records, scopeRecords, protowire.BytesType), ids)
	}
	in := func(number protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), b)
	}
	for name, c := range map[string]struct {
		body   []byte
		isJSON bool
		want   string
	}{
		"json":     {[]byte(asJSON), true, "a;refused;refused;refused;e;"},
		"protobuf": {in(requestResources, in(2, records)), false, ";refused;refused;;"},
	} {
		got := ""
		err := decode(c.body, c.isJSON, nil, func(ev *schemas.Event, err error) {
			switch {
			case err == nil:
				got += ev.Message + ";"
			case errors.Is(err, ErrID):
				got += "refused;"
			default:
				t.Errorf("%s: %v", name, err)
			}
		})
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}
