package series

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// What an erasure under way means is in no read of series, whether the list of series has it or
// not, and what else there is stays.
func TestErasureUnderWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i, host := range []string{"a", "b"} {
		r.insert(point{metric: "cpu", labels: map[string]string{"host": host}, at: at(t, "12:00:30"), value: float64(i + 1)})
	}
	r.Round()
	r.insert(point{metric: "cpu", labels: map[string]string{"host": "a", "late": "1"}, at: at(t, "12:00:40"), value: 7})
	seen := func() (text string, series, samples int, values int) {
		t.Helper()
		r.read = New(r.Query) // which knows no older ledger
		text = r.align(Request{Metric: "cpu", From: at(t, "12:00:00"), To: at(t, "12:02:00"), Align: Mean, Period: time.Minute}).text()
		all, err := r.read.All(t.Context(), ListRequest{Topic: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		err = r.read.Samples(t.Context(), SampleRequest{Topic: "cpu", Series: all, From: at(t, "12:00:00"), To: at(t, "12:02:00")}, func(*Sample) error {
			samples++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		counted, _, err := r.read.Values(t.Context(), ListRequest{Topic: "cpu"}, "host")
		if err != nil {
			t.Fatal(err)
		}
		return text, len(all), samples, len(counted)
	}
	expect := func(when, text string, series, samples, values int) {
		t.Helper()
		if gotText, gotSeries, gotSamples, gotValues := seen(); gotText != text || gotSeries != series || gotSamples != samples || gotValues != values {
			t.Errorf("%s: %q, %d series, %d samples, %d values; want %q, %d, %d, %d", when, gotText, gotSeries, gotSamples, gotValues, text, series, samples, values)
		}
	}
	const all = "{host=a} 12:01 1; {host=a,late=1} 12:01 7; {host=b} 12:01 2"
	expect("before", all, 3, 3, 2)
	_, err := r.Reg.Enter(t.Context(), ledger.Erasure{
		ID: "e-1", Topic: "cpu", To: math.MaxInt64, Cond: "attributes['host'] = {p1:String} AND points = ''", Params: map[string]string{"p1": "a"}, Schema: 1, State: ledger.Waiting,
	})
	if err != nil {
		t.Fatal(err)
	}
	expect("waiting", "{host=b} 12:01 2", 1, 1, 1)
	_, err = r.Reg.AmendErasure(t.Context(), "cpu", "e-1", func(e *ledger.Erasure) bool {
		changed := e.State != ledger.Erased
		e.State = ledger.Erased
		return changed
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.DB.EnsureLedger(t.Context()), r.DB.SaveLedger(t.Context(), schemas.LedgerCopy{Key: schemas.LedgerKey("cpu", "e-1"), Count: 2, Value: []byte("{}"), Applied: true})); err != nil {
		t.Fatal(err)
	}
	expect("over", all, 3, 3, 2) // its rows are gone where it took them, which this one did not
}
