package bench

import (
	"net/url"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// accountEvents is how many events each run of a pair sends: frames of 2,000.
const accountEvents = 600_000

// BenchmarkAccounts sends the same events to a NATS with users, in turn by a user of the account that has the streams and by a client
// without credentials, whose account each frame and each answer crosses. An op is a pair. crossing is its time over that of the
// user's, of all pairs together; cpu-crossing likewise of the CPU of server and producer, which a busy machine disturbs less, and
// cpu-us/frame what the crossing adds of it.
func BenchmarkAccounts(b *testing.B) {
	e, err := OpenEnvironment(b.Context(), EnvironmentConfig{NextTo: b.TempDir() + "/data", Users: true})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	topic := benchTopic("accounts")
	topic.Lanes = 4
	if _, _, err := e.Registry.Apply(b.Context(), topic, false); err != nil {
		b.Fatal(err)
	}
	at, err := url.Parse(e.NATSURL)
	if err != nil {
		b.Fatal(err)
	}
	at.User = nil
	attrs := []schemas.Attr{schemas.Float64("duration_ms", 12.5), schemas.String("endpoint", "/login")}
	send := func(address string) (took, cpu float64) {
		p, err := producer.Connect(b.Context(), address, producer.Config{Topic: topic.Name, Policy: producer.Block})
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = p.Close(b.Context()) }()
		began, used := time.Now(), ownCPU()
		for i := range accountEvents {
			p.Log(fiveFields(i, attrs))
		}
		if err := p.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
		return time.Since(began).Seconds(), ownCPU() - used
	}
	send(e.NATSURL) // streams and buffers are there then
	send(at.String())
	var took, cpu [2]float64
	for n := 0; b.Loop(); n++ {
		for i := range took { // each is the first in every second pair
			k := (n + i) % 2
			t, c := send([]string{e.NATSURL, at.String()}[k])
			b.Logf("%s: %.0f events/s, %.2f us of CPU an event", []string{"inside", "crossing"}[k], accountEvents/t, c*1e6/accountEvents)
			took[k], cpu[k] = took[k]+t, cpu[k]+c
		}
	}
	b.ReportMetric(took[1]/took[0], "crossing")
	b.ReportMetric(cpu[1]/cpu[0], "cpu-crossing")
	b.ReportMetric((cpu[1]-cpu[0])*1e6/float64(b.N*accountEvents/2000), "cpu-us/frame")
	b.ReportMetric(float64(b.N)*accountEvents/took[0], "events/s")
}
