package otlp

import "testing"

// Calls above those that may be under way are refused and counted, before and after their heads were admitted. One that ends makes room.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	counted := 0
	g := New(Config{OnLimit: func(what, why string) {
		if counted++; what != "OTLP/gRPC calls" || why != "full" {
			t.Errorf("counted is %s %s", what, why)
		}
	}}).NewGRPC(nil)
	var leave func()
	for i := range maxCalls {
		var err error
		if leave, err = g.enter(); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if _, err := g.admit(t.Context(), nil); err == nil {
		t.Error("one more is admitted")
	}
	if _, err := g.enter(); err == nil {
		t.Error("one more enters")
	}
	if counted != 2 {
		t.Errorf("%d are counted", counted)
	}
	leave()
	if _, err := g.admit(t.Context(), nil); err != nil {
		t.Errorf("after one ended: %v", err)
	}
}
