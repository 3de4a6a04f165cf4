package inputs

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// What unpacks, nests or counts to far more than it is, at every input. Each is refused, and the process is the same.
func TestBombs(t *testing.T) {
	n := up(t)
	zip := func(b []byte) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, _ = z.Write(b)
		_ = z.Close()
		return out.Bytes()
	}
	zeros := zip(make([]byte, 200<<20))
	otlpDeep := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":` + nested(`{"arrayValue":{"values":[`, `{"stringValue":"x"}`, `]}}`, 20_000) + `}]}]}]}`
	lokiDeep := `{"streams":[{"stream":{"a":"b"},"values":[["1","x",` + deepJSON + `]]}]}`
	const ndjson, js, proto = "application/x-ndjson", "application/json", "application/x-protobuf"
	events, logs, metrics, loki, write, bulk := n.HTTP+"/v1/topics/app/events", n.OTLPHTTP+"/v1/logs", n.OTLPHTTP+"/t/cpu/v1/metrics", n.HTTP+"/loki/api/v1/push", n.HTTP+"/t/cpu/api/v1/write", n.Elastic+"/app/_bulk"
	before := n.resident()
	for name, c := range map[string]struct {
		to, kind, encoding string
		body               []byte
	}{
		"gzip, lines":              {events, ndjson, "gzip", zeros},
		"gzip, logs":               {logs, js, "gzip", zeros},
		"gzip, metrics":            {metrics, proto, "gzip", zeros},
		"gzip, Loki":               {loki, js, "gzip", zeros},
		"gzip, bulk":               {bulk, ndjson, "gzip", zeros},
		"gzip, remote write":       {write, proto, "gzip", zeros},
		"gzip in gzip":             {events, ndjson, "gzip", zip(zeros)},
		"gzip named twice":         {events, ndjson, "gzip, gzip", zip(zeros)},
		"snappy of 4 GiB":          {write, proto, "snappy", []byte("\xff\xff\xff\xff\x0f\x00")},
		"snappy of 4 GiB, Loki":    {loki, proto, "", []byte("\xff\xff\xff\xff\x0f\x00")},
		"deep JSON, lines":         {events, js, "", []byte(deepJSON)},
		"deep JSON, array":         {events, js, "", []byte("[" + deepJSON + "]")},
		"deep JSON, logs":          {logs, js, "", []byte(otlpDeep)},
		"deep JSON, Loki":          {loki, js, "", []byte(lokiDeep)},
		"deep JSON, bulk":          {bulk, ndjson, "", []byte("{\"create\":{}}\n" + deepJSON + "\n")},
		"deep JSON, bulk action":   {bulk, ndjson, "", []byte(deepJSON + "\n{}\n")},
		"a million keys":           {events, js, "", []byte("{" + strings.TrimSuffix(manyPairs(1_000_000), ",") + "}")},
		"deep protobuf, logs":      {logs, proto, "", deepProto(30_000)},
		"many empty elements":      {events, js, "", []byte("[" + strings.Repeat("{},", 4_000_000) + "{}]")},
		"deep arrays, lines":       {events, js, "", []byte(deepArrays)},
		"a query as deep as it is": {n.HTTP + "/v1/replays", js, "", []byte(`{"topic":"app","into":"probe","where":"` + bodyParens + `"}`)},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.to, bytes.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", c.kind)
		req.Header.Set("Authorization", "Bearer "+n.secret())
		if c.encoding != "" {
			req.Header.Set("Content-Encoding", c.encoding)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			select {
			case <-n.ended:
				t.Fatalf("%s: the process has ended", name)
			default:
			}
			continue // it was cut off while it was sent
		}
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		_ = resp.Body.Close()
		var bulk struct{ Errors bool }
		refused := resp.StatusCode/100 == 4 || json.Unmarshal(text, &bulk) == nil && bulk.Errors
		if !refused {
			t.Errorf("%s: %s %.300s", name, resp.Status, text)
		}
	}
	if after, limit := n.resident(), before+300<<20; after > limit {
		t.Errorf("%d MiB resident, expected %d at most", after>>20, limit>>20)
	}
}

// deepProto is an export request with values inside each other.
func deepProto(n int) []byte {
	var b []byte
	field := func(number byte, inner []byte) []byte {
		out := []byte{number<<3 | 2}
		size := len(inner)
		for ; size >= 0x80; size >>= 7 {
			out = append(out, byte(size)|0x80)
		}
		return append(append(out, byte(size)), inner...)
	}
	b = field(1, []byte("x"))
	if n > 5000 { // each level copies what is in it
		n = 5000
	}
	for range n {
		b = field(5, field(1, b))
	}
	return field(1, field(2, field(2, field(5, b))))
}
