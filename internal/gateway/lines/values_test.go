package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/schemas"
)

// What of arrays, and of objects one after the other, is cut, and from where on they are malformed.
func TestCut(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		cuts []string
		says string
	}{
		``:                          {nil, ""},
		` `:                         {nil, ""},
		`[]`:                        {nil, ""},
		"[ \n ]\n":                  {nil, ""},
		`{}`:                        {[]string{"0 {}"}, ""},
		"{} {}\n{\"a\":[1]}":        {[]string{"0 {}", "0 {}", `0 {"a":[1]}`}, ""},
		`[{},{}]`:                   {[]string{"1 {}", "2 {}"}, ""},
		`[{}] {}`:                   {[]string{"1 {}", "0 {}"}, ""},
		`[7, "a]\",", null ,[1,2]]`: {[]string{"1 7", `2 "a]\","`, "3 null", "4 [1,2]"}, ""},
		`[{"a":"}"},{"b":"\\"}]`:    {[]string{`1 {"a":"}"}`, `2 {"b":"\\"}`}, ""},
		`[{}`:                       {[]string{"1 {}"}, "the array is not closed"},
		`[{},`:                      {[]string{"1 {}"}, "the array is not closed"},
		`[{},]`:                     {[]string{"1 {}"}, "a value was expected"},
		`[,]`:                       {nil, "a value was expected"},
		`[{} {}]`:                   {[]string{"1 {}"}, "after element 1 a comma or ] was expected"},
		`[{},{"a":"b]`:              {[]string{"1 {}"}, "a value was expected, or it is not closed"},
		`{},{}`:                     {[]string{"0 {}"}, "a value was expected"},
		`[{}]]`:                     {[]string{"1 {}"}, "a value was expected"},
		`"a`:                        {nil, "not closed"},
	} {
		cuts, err := cut([]byte(body))
		var got []string
		for _, c := range cuts {
			got = append(got, fmt.Sprint(c.element, " ", body[c.from:c.to]))
		}
		if d := cmp.Diff(want.cuts, got); d != "" {
			t.Errorf("%s: %s", body, d)
		}
		if want.says == "" && err != nil || want.says != "" && (!errors.Is(err, errBody) || !strings.Contains(err.Error(), want.says)) {
			t.Errorf("%s: %v, want %q", body, err, want.says)
		}
	}
}

// An array is cut as encoding/json cuts it, whatever is in it.
func TestCutAsJSON(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	const letters = "[]{},:\"\\ \n\t1etrunlfas"
	for range 200_000 {
		body := make([]byte, random.IntN(24))
		for i := range body {
			body[i] = letters[random.IntN(len(letters))]
		}
		if random.IntN(2) == 0 {
			body = append(append([]byte("["), body...), ']')
		}
		if !json.Valid(body) {
			_, _ = cut(body) // it ends
			continue
		}
		var want []string
		d := json.NewDecoder(bytes.NewReader(body))
		array := bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))
		if array {
			_, _ = d.Token()
		}
		for !array || d.More() {
			var raw json.RawMessage
			if err := d.Decode(&raw); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			want = append(want, string(raw))
		}
		cuts, err := cut(body)
		var got []string
		for _, c := range cuts {
			got = append(got, string(body[c.from:c.to]))
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Fatalf("seed %d: %q: %v %s", seed, body, err, d)
		}
	}
}

// An array of more events than a request may have is refused before one is decoded.
func TestManyElements(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"an array":         "[" + strings.Repeat("{},", MaxEvents) + "{}]",
		"one by one":       strings.Repeat("{\n}", MaxEvents+1),
		"a broken one too": "[" + strings.Repeat("{},", MaxEvents) + "{},{",
	} {
		decoded := 0
		err := Decode([]byte(body), intake.Options{Format: formatJSON}, func(*Record) error {
			decoded++
			return nil
		})
		var own *request.Error
		if !errors.As(err, &own) || own.Status != http.StatusRequestEntityTooLarge || decoded > 0 {
			t.Errorf("%s: %v after %d were decoded", name, err, decoded)
		}
	}
}

// A refusal inside an array names the element, also where all are in one line.
func TestElementsAreNamed(t *testing.T) {
	t.Parallel()
	_, post := serve(t, Config{})
	status, a := post("", "application/json", strings.NewReader(`[{"message":"a"},7,{"message":"b"},{"ts":"yesterday"}]`))
	if status != http.StatusOK || a.Accepted != 2 || len(a.Refused) != 2 || a.Refused[0].Element != 2 || a.Refused[1].Element != 4 || a.Refused[1].Line != 1 {
		t.Errorf("%d %+v", status, a)
	}
	status, a = post("", "application/json", strings.NewReader("[{\"message\":\"a\"},\n{\"message\":\"b\",}]"))
	if status != http.StatusOK || a.Accepted != 1 || len(a.Refused) != 1 || a.Refused[0].Reason != "not-json" || !strings.Contains(a.Refused[0].Message, "line 2, byte 34 of the body: element 2: invalid character '}'") {
		t.Errorf("%d %+v", status, a)
	}
	status, a = post("?refuse=all", "application/json", strings.NewReader(`[{"message":"a"},7]`))
	if status != http.StatusBadRequest || a.Error == nil || !strings.Contains(a.Error.Message, "the first is element 2, in line 1: ") {
		t.Errorf("%d %+v", status, a)
	}
}

// honest is a body of n usual events as NDJSON, and as an array.
func honest(n int) (ndjson, array []byte) {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"duration_ms":%d.25,"level":"info","message":"request served from cache after retry","service":"bench","status":200,"ts":"2026-11-20T10:00:00.%06dZ","user_id":"u-%d"}`+"\n", i, i, i%100)
	}
	ndjson = []byte(text.String())
	return ndjson, append(append([]byte("["), bytes.ReplaceAll(bytes.TrimSpace(ndjson), []byte("\n"), []byte(","))...), ']')
}

// decodeAll decodes a body of n events.
func decodeAll(t testing.TB, body []byte, format string, n int) {
	topic := schemas.NewTopic("app")
	got := 0
	err := Decode(body, intake.Options{Format: format, Now: time.Unix(0, 0), Topic: &topic}, func(rec *Record) error {
		got++
		return rec.Err
	})
	if err != nil || got != n {
		t.Fatal(got, err)
	}
}

// An array takes about the memory that NDJSON takes. It runs alone: memory is counted for the process.
func TestArraysCostAsLines(t *testing.T) { //nolint:paralleltest // see above
	const n = 5000
	ndjson, array := honest(n)
	taken := func(body []byte, format string) (bytes, objects uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decodeAll(t, body, format, n)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, after.Mallocs - before.Mallocs
	}
	lineBytes, lineObjects := taken(ndjson, intake.FormatNDJSON)
	arrayBytes, arrayObjects := taken(array, formatJSON)
	if arrayBytes > lineBytes*3/2 || arrayObjects > lineObjects*3/2 {
		t.Errorf("an array takes %d bytes in %d objects, lines %d in %d", arrayBytes, arrayObjects, lineBytes, lineObjects)
	}
}

// BenchmarkArray reads 1,000 events as lines and as an array.
func BenchmarkArray(b *testing.B) {
	ndjson, array := honest(1000)
	for name, c := range map[string]struct {
		body   []byte
		format string
	}{"lines": {ndjson, intake.FormatNDJSON}, "array": {array, formatJSON}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				decodeAll(b, c.body, c.format, 1000)
			}
		})
	}
}
