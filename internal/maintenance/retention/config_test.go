package retention

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
)

func TestKeepTime(t *testing.T) {
	for settle, refused := range map[time.Duration]bool{0: false, time.Second: true, MinKeepTime - 1: true, MinKeepTime: false, -time.Hour: true} {
		cfg := Config{Registry: &registry.Registry{}, DB: &tables.DB{}, KeepTime: settle}.withDefaults()
		err := cfg.check()
		if errors.Is(err, ErrKeepTime) != refused || (err != nil) != refused {
			t.Errorf("%s: %v", settle, err)
		}
		if refused && !strings.Contains(err.Error(), settle.String()) {
			t.Errorf("%s is not named: %v", settle, err)
		}
	}
	if err := (&Config{KeepTime: MinKeepTime}).check(); err == nil {
		t.Error("a config without a registry was taken")
	}
}
