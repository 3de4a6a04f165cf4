package schemas

import "github.com/almanac-events/almanac/schemas/kinds"

// Alias gives JSON events of kind meter the kind's names where they come under those of
// CloudEvents or of Stripe's meter events. A nil topic, or one of another kind, changes
// nothing.
func (t *Topic) Alias(e *Event) {
	if t == nil || t.Kind != kinds.Meter {
		return
	}
	switch {
	case e.attr("specversion") != nil && e.attr("source") != nil:
		t.aliasCloudEvent(e)
	case e.attr("event_name") != nil:
		t.aliasStripe(e)
	}
}

// aliasCloudEvent maps a CloudEvent: source and id, which name it, are the cause; subject
// is the space, and data.delta or data.value the delta. type is the meter's name already.
func (t *Topic) aliasCloudEvent(e *Event) {
	id := e.ID.String() // a UUID became the event's id
	if a := e.attr("id"); a != nil {
		id = a.Text()
	} else if e.ID.IsZero() {
		return // without an id it has no cause, and is refused
	}
	t.give(e, kinds.ColCause, String("", e.attr("source").Text()+" "+id))
	t.move(e, kinds.ColSpace, "subject")
	t.move(e, kinds.ColDelta, "data.delta", "data.value")
	t.move(e, kinds.ColProvider, "data.provider")
	t.aliasUser(e, "data."+ColUserID)
}

// aliasStripe maps a meter event of Stripe's: event_name is the meter's name, identifier
// the cause, the customer the user and, without a subject of its own, the space.
func (t *Topic) aliasStripe(e *Event) {
	const customer = "payload.stripe_customer_id"
	if e.Type == "" {
		e.Type = e.attr("event_name").Text()
	}
	// What a rule takes out of user_id may not stand in the space either, unless that has a
	// rule of its own. Without a space the event is refused.
	if a := e.attr(customer); a != nil && (t.RuleOf(ColUserID) == "" || t.RuleOf(kinds.ColSpace) != "") {
		t.give(e, kinds.ColSpace, *a)
	}
	t.aliasUser(e, customer)
	t.move(e, kinds.ColCause, "identifier")
	t.move(e, kinds.ColDelta, "payload.value")
}

// aliasUser takes the user from an attribute, unless the event names one. The attribute stays,
// under a name that the rule of user_id covers (OtherName).
func (t *Topic) aliasUser(e *Event, name string) {
	a := e.attr(name)
	if a == nil {
		return
	}
	if e.UserID == "" {
		e.UserID = a.Text()
	}
	a.Key = t.OtherName(ColUserID, name)
}

// give adds a value of a column, unless the event brings one.
func (t *Topic) give(e *Event, column string, value Attr) {
	if _, _, have := t.valueOf(e, column); have {
		return
	}
	value.Key = column
	e.Attrs = append(e.Attrs, value)
}

// move renames the first of the named attributes that there is to a column, unless the
// event brings that.
func (t *Topic) move(e *Event, column string, names ...string) {
	if _, _, have := t.valueOf(e, column); have {
		return
	}
	for _, name := range names {
		if a := e.attr(name); a != nil {
			a.Key = column
			return
		}
	}
}
