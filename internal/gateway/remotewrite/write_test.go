package remotewrite

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/prompb"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// What is good is stored, what is not is named, and a request that is sent again is stored again.
func TestWrite(t *testing.T) {
	t.Parallel()
	env := pooltest.Start(t, nil, schemas.NewTopicOf(kinds.Metric, "metrics"), schemas.NewTopicOf(kinds.Metric, "cpu"), schemas.Topic{Name: "app"})
	in := New(Config{Pool: env.Pool, Topic: "metrics"})
	mux := http.NewServeMux()
	mux.Handle("POST /api/v1/write", in)
	mux.Handle("POST /t/{topic}/api/v1/write", in)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	one := func(encoding, kind string) map[string]string {
		return map[string]string{"Content-Encoding": encoding, "Content-Type": kind}
	}
	v1, v2 := one("snappy", "application/x-protobuf"), one("snappy", "application/x-protobuf;proto=io.prometheus.write.v2.Request")
	long := &prompb.WriteRequest{Timeseries: []prompb.TimeSeries{
		{Labels: labelsOf("__name__", "good"), Samples: []prompb.Sample{{Value: 1, Timestamp: stamp}}},
		{Labels: labelsOf("__name__", "bad", strings.Repeat("x", 300), "1"), Samples: []prompb.Sample{{Value: 1, Timestamp: stamp}}},
		{Labels: labelsOf("__name__", "early"), Samples: []prompb.Sample{{Value: 1, Timestamp: 0}}},
	}}
	for _, c := range []struct {
		name, path string
		headers    map[string]string
		body       []byte
		status     int
		written    string
		says       string
	}{
		{"version 2", "/api/v1/write", v2, packed(t, version2()), 204, "5", ""},
		{"sent again", "/api/v1/write", v2, packed(t, version2()), 204, "5", ""},
		{"some refused", "/t/cpu/api/v1/write", v1, packed(t, version1()), 400, "5", "3 of 8 samples refused, the others are stored: series 3: bad series: it has no label __name__"},
		{"refused by the topic", "/t/cpu/api/v1/write", v1, packed(t, long), 400, "1", "2 of 3 samples refused, the others are stored: series 2:"},
		{"unknown message", "/api/v1/write", one("snappy", "application/x-protobuf;proto=io.prometheus.write.v3.Request"), packed(t, version1()), 415, "0", "is not known"},
		{"unknown encoding", "/api/v1/write", one("gzip", "application/x-protobuf"), packed(t, version1()), 415, "0", "is not known"},
		{"unknown type", "/api/v1/write", one("snappy", "application/json"), packed(t, version1()), 415, "0", "is not known"},
		{"not snappy", "/api/v1/write", v1, []byte("\xff\xff\xff\xff\xff\xff\xff"), 400, "0", "it must be a snappy block"},
		{"unknown topic", "/t/nothing/api/v1/write", v1, packed(t, version1()), 404, "0", "almanac topics apply"},
		{"another kind", "/t/app/api/v1/write", v1, packed(t, version1()), 400, "0", "samples go to topics of kind metric"},
	} {
		a := inputtest.Send(t, http.MethodPost, s.URL+c.path, c.headers, c.body)
		if a.Status != c.status || a.Header.Get(headerSamples) != c.written || a.Header.Get(headerHistograms) != "0" || !strings.Contains(string(a.Body), c.says) {
			t.Errorf("%s: %d, %s written, %s", c.name, a.Status, a.Header.Get(headerSamples), a.Body)
		}
	}
	if n := len(env.Events("metrics")); n != 10 { // reads count those of one series and time once
		t.Errorf("metrics has %d events, want the 5 that were sent twice", n)
	}
	if n := len(env.Events("cpu")); n != 6 {
		t.Errorf("cpu has %d events, want 6", n)
	}
}
