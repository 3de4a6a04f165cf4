package schemas

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// setDocuments fills in the length of generated ids.
func (t *Topic) setDocuments() {
	if d := &t.Documents; d.IDs == IDsGenerated {
		d.IDLength = cmp.Or(d.IDLength, DefaultIDLength)
	}
}

// validateDocuments reports which settings do not go together with documents.
func (t *Topic) validateDocuments() error {
	d := t.Documents
	switch {
	case t.Kind != kinds.Document:
		return nil
	case d.IDs == IDsAny && d.IDLength != 0:
		return fmt.Errorf("documents: id_length is for ids: %s", IDsGenerated)
	case d.IDs == IDsGenerated && (d.IDLength < 4 || d.IDLength > 128):
		return fmt.Errorf("documents: id_length is %d, it must be 4 to 128", d.IDLength)
	case t.Lanes&(t.Lanes-1) != 0:
		return fmt.Errorf("%d lanes, a topic of kind %s must have a power of two from 1 to %d", t.Lanes, t.Kind, MaxLanes)
	case len(t.PII) > 0:
		return fmt.Errorf("privacy rules are not built for kind %s: they are applied by producers", t.Kind)
	}
	return t.validateForgotten()
}

// validateForgotten reports which fields of documents cannot be cleared. Those that stay tell a version
// from another, and what the body has too is only gone with the body.
func (t *Topic) validateForgotten() error {
	a := t.Anonymise
	if !a.On() {
		return nil
	}
	body := slices.Contains(a.Fields, kinds.ColBody)
	for _, f := range a.Fields {
		promoted := t.field(f) >= 0 && t.Spec().Field(f) == nil
		switch {
		case f == kinds.ColBody || f == kinds.ColBy:
		case f != ColUserID && !promoted:
			return fmt.Errorf("anonymise field %q cannot be cleared: of documents %s, %s, %s and the topic's own fields can", f, kinds.ColBy, kinds.ColBody, ColUserID)
		case !body && (promoted || t.Documents.UserField != ""):
			return fmt.Errorf("anonymise field %q: the body has it too, and is cleared as a whole: name %s as well", f, kinds.ColBody)
		}
	}
	if after := time.Duration(a.AfterDays) * 24 * time.Hour; t.Documents.HotFor >= after {
		return fmt.Errorf("anonymise after_days is %d, and documents.hot_for keeps bodies in %s for %s: it must be shorter", a.AfterDays, StreamDocs, t.Documents.HotFor)
	}
	return nil
}
