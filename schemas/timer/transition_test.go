package timer

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

var testKey = schemas.NewTimerKey("timers", "g", "id", 16, 4)

func created(t *testing.T) Record {
	t.Helper()
	r, same, err := Create(testKey, nil, Draft{Spec: Spec{URL: "http://a.example/x"}, Due: 100, Life: schemas.NewID(1)}, 10)
	if err != nil || same {
		t.Fatal(r, same, err)
	}
	r.Seq = 1
	return r
}

// stored gives a record the sequence that its message would have.
func stored(r Record, seq uint64) Record { r.Seq = seq; return r }

func TestTransitions(t *testing.T) {
	p := created(t)
	claimed := stored(Claim(&p, "me", "c1", 100), 2)
	if claimed.State() != StateFiring || claimed.Attempt != 1 || claimed.SpecSeq != 1 || claimed.First != 100 {
		t.Errorf("claimed: %+v", claimed)
	}
	again := Claim(&claimed, "other", "c2", 200)
	if again.Attempt != 1 || again.CallKey() != claimed.CallKey() || again.First != 100 {
		t.Errorf("an abandoned attempt was claimed as %s, want %s", again.CallKey(), claimed.CallKey())
	}
	if _, err := Update(&claimed, Change{}, AnyRevision, 150); !errors.Is(err, ErrFiring) {
		t.Errorf("update while firing: %v", err)
	}
	if n, inFlight, err := Delete(&claimed, AnyRevision, 150); err != nil || !inFlight || n.Op != Cancelled {
		t.Errorf("delete while firing: %v %v %v", n.Op, inFlight, err)
	}
	later := int64(500)
	u, err := Update(&p, Change{Due: &later}, 1, 50)
	if err != nil || u.Revision != 2 || u.Due != 500 || u.SpecSeq != 0 || u.Spec == nil || u.Life != p.Life {
		t.Errorf("update: %+v %v", u, err)
	}
	if _, err := Update(&p, Change{}, 2, 50); !errors.Is(err, ErrRevision) {
		t.Errorf("update of another revision: %v", err)
	}
	done := stored(Complete(&claimed, Outcome{Kind: Success, Status: 200}, Call{Status: 200}, nil, 101, 0), 3)
	for name, err := range map[string]error{
		"update": second(Update(&done, Change{}, AnyRevision, 200)),
		"delete": third(Delete(&done, AnyRevision, 200)),
		"none":   third(Delete(nil, AnyRevision, 200)),
	} {
		t.Run(name, func(t *testing.T) {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s of a finished timer: %v", name, err)
			}
		})
	}
	if _, err := Again(&done, 200); !errors.Is(err, ErrState) {
		t.Errorf("retry of a done timer: %v", err)
	}
	failed := Complete(&claimed, Outcome{Kind: Fail, Error: ErrBlocked}, Call{Error: ErrBlocked}, &Policy{Attempts: 9}, 101, 0)
	if _, err := Again(&failed, 300); !errors.Is(err, ErrNotFound) {
		t.Errorf("retry without a spec: %v", err)
	}
	failed.Spec = p.Spec
	r, err := Again(&failed, 300)
	if err != nil || r.State() != StatePending || r.Revision != 2 || r.Attempt != 0 || r.Due != 300 || r.SpecSeq != 0 || r.Spec != p.Spec {
		t.Errorf("retry: %+v %v", r, err)
	}
}

func TestCreateTwice(t *testing.T) {
	p := created(t)
	n := Draft{Spec: Spec{URL: "http://a.example/x"}, Due: 100, Life: schemas.NewID(2)}
	if r, same, err := Create(testKey, &p, n, 20); err != nil || !same || r.Life != p.Life {
		t.Errorf("the same content: %+v %v %v", r, same, err)
	}
	n.Due = 101
	if _, _, err := Create(testKey, &p, n, 20); !errors.Is(err, ErrExists) {
		t.Errorf("another content: %v", err)
	}
	n.Replace = true
	r, same, err := Create(testKey, &p, n, 20)
	if err != nil || same || r.Op != Updated || r.Revision != 2 || r.Life != p.Life || r.Due != 101 {
		t.Errorf("replace: %+v %v %v", r, same, err)
	}
	over, _, _ := Delete(&p, AnyRevision, 30)
	if r, _, err := Create(testKey, &over, n, 40); err != nil || r.Op != Created || r.Life != n.Life || r.Revision != 1 || r.Changed <= over.Changed {
		t.Errorf("after a delete: %+v %v", r, err)
	}
}

// A due time that passed while the creation was under way is written later, and the timer is the same when it is
// created again: by the due time that was asked for, and by the one that this creation wrote.
func TestCreateLate(t *testing.T) {
	n := Draft{Spec: Spec{URL: "http://a.example/x", MaxLateness: 1}, Due: 100, NotBefore: 150, Life: schemas.NewID(2)}
	r, same, err := Create(testKey, nil, n, 151)
	if err != nil || same || r.Due != 150 || TooLate(&r, r.Spec, 151) {
		t.Errorf("written after its due time: %+v %v %v", r, same, err)
	}
	if _, same, err := Create(testKey, &r, n, 160); err != nil || !same {
		t.Errorf("its own write: %v %v", same, err)
	}
	before, _, _ := Create(testKey, nil, Draft{Spec: n.Spec, Due: 100, Life: schemas.NewID(1)}, 10)
	if got, same, err := Create(testKey, &before, n, 160); err != nil || !same || got.Due != 100 {
		t.Errorf("one written in time: %+v %v %v", got, same, err)
	}
	n.NotBefore = 50
	if r, _, err := Create(testKey, nil, n, 51); err != nil || r.Due != 100 {
		t.Errorf("ahead: %+v %v", r, err)
	}
}

func TestTooLate(t *testing.T) {
	p := created(t)
	s := &Spec{MaxLateness: time.Second}
	if TooLate(&p, s, 100+int64(time.Second)) || !TooLate(&p, s, 101+int64(time.Second)) || TooLate(&p, &Spec{}, 1<<60) {
		t.Error("the bound is not max_lateness")
	}
	if f := FailTooLate(&p, 200); f.Op != Failed || f.Call.Error != ErrTooLate || f.Attempt != 0 {
		t.Errorf("%+v", f)
	}
}

// A timer that the front lost is pending as it was, and the attempt that was under way is made under the same key.
func TestRestore(t *testing.T) {
	p := created(t)
	back := Restore(&p, 500)
	if back.Op != Restored || back.State() != StatePending || back.Due != p.Due || back.Attempt != 0 || back.SpecSeq != 0 || back.Spec == nil || back.Revision != 1 || back.Life != p.Life {
		t.Errorf("pending: %+v", back)
	}
	first := stored(Claim(&p, "me", "c1", 100), 2)
	retry := stored(Complete(&first, Outcome{Kind: TryAgain, Status: 500}, Call{Status: 500}, &Policy{Attempts: 3, Initial: time.Second}, 110, 0.5), 3)
	second := stored(Claim(&retry, "me", "c2", retry.Due), 4)
	second.Spec = p.Spec
	back = stored(Restore(&second, retry.Due+50), 9)
	if back.State() != StatePending || back.Due != retry.Due+50 || back.Attempt != 1 || back.First != first.First || back.Owner != "" {
		t.Errorf("firing: %+v", back)
	}
	if again := Claim(&back, "other", "c3", back.Due); again.CallKey() != second.CallKey() || again.SpecSeq != 9 {
		t.Errorf("it is called as %s, and was called as %s", again.CallKey(), second.CallKey())
	}
	done := stored(Complete(&second, Outcome{Kind: Success, Status: 200}, Call{Status: 200}, nil, 700, 0), 5)
	done.Spec = p.Spec
	if over := Rewrite(&done, 2e9); over.Op != Done || over.Call != done.Call || over.SpecSeq != 0 || over.Spec == nil || over.Changed != 2e9 {
		t.Errorf("put again: %+v", over)
	}
}

func TestRecordRoundTrip(t *testing.T) {
	p := created(t)
	claimed := stored(Claim(&p, "me", "0123456789abcdef", 150), 2)
	settled := Complete(&claimed, Outcome{Kind: TryAgain, Status: 500, Error: ErrStatus},
		Call{Status: 500, Error: ErrStatus, Detail: "a\nb", Took: 3 * time.Millisecond}, &Policy{Attempts: 2}, 160, 0.5)
	for _, r := range []Record{p, claimed, stored(settled, 3)} {
		h, data, err := r.Message()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(r.Key.Subject(), r.Seq, h, data)
		if err != nil {
			t.Fatal(err)
		}
		if got.Call.Detail != "" {
			got.Call.Detail = r.Call.Detail
		}
		got.Call.Late, r.Call.Late = 0, 0 // to the microsecond
		if (got.Spec == nil) != (r.Spec == nil) || got.Spec != nil && !got.Spec.Equal(r.Spec) {
			t.Errorf("spec %+v, want %+v", got.Spec, r.Spec)
		}
		got.Spec, r.Spec, r.AskedDue = nil, nil, 0
		if got != r {
			t.Errorf("got  %+v\nwant %+v", got, r)
		}
	}
	h, data, err := claimed.Message()
	if err != nil {
		t.Fatal(err)
	}
	h.Set(schemas.HeaderSpecSeq, "-1")
	if r, err := Parse(p.Key.Subject(), 2, h, data); !errors.Is(err, schemas.ErrRecord) {
		t.Errorf("a spec before the stream's first message: %+v, %v", r, err)
	}
	if _, err := Parse(p.Key.Subject(), 1, nil, nil); !errors.Is(err, schemas.ErrRecord) {
		t.Errorf("without headers: %v", err)
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// TestRelativeCreationIsRepeated holds that a creation which asks for a time from now is the same timer when its answer was lost and it
// is sent again later, and that nothing else is.
func TestRelativeCreationIsRepeated(t *testing.T) {
	const after, gap = 2 * time.Hour, 7 * time.Second
	spec := Spec{URL: "http://a.example/x", After: after}
	asked := int64(1e18)
	n := Draft{Spec: spec, Due: asked + int64(after), Life: schemas.NewID(1)}
	first, _, err := Create(testKey, nil, n, asked)
	if err != nil {
		t.Fatal(err)
	}
	first.Seq = 1
	var moved Record
	later := first.Due + 1
	if moved, err = Update(&first, Change{Due: &later}, AnyRevision, asked+1); err != nil {
		t.Fatal(err)
	}
	if moved.AskedDue = moved.Due; moved.Spec.After != 0 || first.Spec.After != after {
		t.Errorf("updated: %s ahead, and %s before", moved.Spec.After, first.Spec.After)
	}
	for name, c := range map[string]struct {
		prev   *Record
		change func(*Draft)
		same   bool
	}{
		"the same length":       {&first, func(*Draft) {}, true},
		"another length":        {&first, func(n *Draft) { n.Spec.After++ }, false},
		"a time":                {&first, func(n *Draft) { n.Spec.After = 0 }, false},
		"the time it is due at": {&first, func(n *Draft) { n.Spec.After, n.Due = 0, first.Due }, true},
		"another URL":           {&first, func(n *Draft) { n.Spec.URL += "y" }, false},
		"another user":          {&first, func(n *Draft) { n.User = "u" }, false},
		"updated since":         {&moved, func(*Draft) {}, false},
	} {
		t.Run(name, func(t *testing.T) {
			again := n
			again.Due += int64(gap)
			c.change(&again)
			got, same, err := Create(testKey, c.prev, again, asked+int64(gap))
			if same != c.same || same && got.Due != first.Due || !same && !errors.Is(err, ErrExists) {
				t.Errorf("%s: same %v, due %d, %v", name, same, got.Due, err)
			}
		})
	}
	again := n
	again.Replace, again.Due = true, n.Due+int64(gap)
	if got, same, err := Create(testKey, &first, again, asked+int64(gap)); same || err != nil || got.Due != again.Due {
		t.Errorf("replaced: same %v, due %d, %v; expected the new time", same, got.Due, err)
	}
}

// TestMovedCreationIsMadeOnce holds that the line of an export makes one timer however often it is imported, whether its time has passed
// or it was called.
func TestMovedCreationIsMadeOnce(t *testing.T) {
	now := int64(1e18)
	n := Draft{Spec: Spec{URL: "http://a.example/x"}, Due: now - int64(time.Hour), NotBefore: now, Life: schemas.NewID(1), Moved: true}
	first, _, err := Create(testKey, nil, n, now)
	if err != nil || first.Due != now {
		t.Fatal(first.Due, err)
	}
	claimed := Claim(&first, "me", "c", now)
	done := Complete(&claimed, Outcome{Kind: Success}, Call{}, nil, now, 0)
	done.Spec, done.AskedDue = first.Spec, first.AskedDue
	for _, prev := range []*Record{&first, &done} {
		n.NotBefore = now + int64(time.Minute)
		if got, same, err := Create(testKey, prev, n, n.NotBefore); !same || err != nil || got.Op != prev.Op {
			t.Errorf("%s: same %v, %s, %v", prev.Op, same, got.Op, err)
		}
		other := n
		other.Spec.URL += "y"
		if _, same, _ := Create(testKey, prev, other, n.NotBefore); same {
			t.Errorf("%s: another content is the same", prev.Op)
		}
	}
}
