package usage

import "testing"

// A copy that came later may have the smaller id: then it is the one that counts, and the row
// that sums already stand for does not.
func TestCopyWithASmallerID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	diff := func(id string, shard uint64) row {
		return row{meter: "bytes", provider: "p", space: "s1", cause: "c-1", customer: "cust", delta: 1, ms: at(t, "2026-02-10T00:00:00Z").UnixMilli(), shard: shard, id: id}
	}
	check := func(when string, repeats uint64) {
		t.Helper()
		for _, req := range []Request{{Customer: "cust"}, {Provider: "p"}, {GroupBy: BySpace}, {Customer: "cust", GroupBy: ByMonth}, {Space: "s1"}} {
			req.From, req.To = at(t, "2026-02-01T00:00:00Z"), at(t, "2026-03-01T00:00:00Z")
			if b := r.one(req); b.SizeEnd != "1" || b.Causes != 1 || b.Repeats != repeats {
				t.Errorf("%s, %+v: %+v", when, req, b)
			}
		}
	}
	r.insert(diff("00000000-0000-7000-8000-00000000ffff", 0))
	r.derive()
	check("summed", 0)
	r.insert(diff("00000000-0000-7000-8000-000000000001", 1))
	check("before the copy is examined", 1)
	r.Examine(r.Shards()[1])
	check("before it is summed", 1)
	r.derive()
	check("all derived", 1)
}
