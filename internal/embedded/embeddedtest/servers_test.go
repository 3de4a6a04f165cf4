package embeddedtest_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// Tests in parallel share the engine and see nothing of each other.
func TestStartKeepsTestsApart(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := embeddedtest.Start(t)
			db := s.SQL()
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n"); err != nil {
				t.Fatal(err)
			}
			js, err := jetstream.New(s.NC())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
				t.Fatal(err)
			}
			ack, err := js.Publish(t.Context(), "s", nil)
			if err != nil {
				t.Fatal(err)
			}
			if ack.Sequence != 1 {
				t.Errorf("the stream began at %d: another test wrote to it", ack.Sequence)
			}
		})
	}
}
