package schemas

// Anonymise says which fields of a topic's events are cleared, and when. The
// events stay, with their ids, positions and everything else.
type Anonymise struct {
	// AfterDays is the age of events whose fields are cleared; 0: never.
	AfterDays int `json:"after_days" yaml:"after_days"`
	// Fields name what is cleared: "attributes.x" is the attribute x, "attributes"
	// all of them, and any other name both the column of that name, where the topic
	// has one, and the attribute of that name. So a field that was promoted later is
	// cleared wherever an event has it. Names derived from one are cleared with it,
	// as a privacy rule covers them (RuleNames).
	Fields []string `json:"fields,omitempty" yaml:"fields,omitempty"`
}

// On says whether anything is ever cleared.
func (a Anonymise) On() bool { return a.AfterDays > 0 && len(a.Fields) > 0 }

// MaxKeepDays bounds both periods of retention: a hundred years, beyond which a
// number is a slip of the finger.
const MaxKeepDays = 36_500
