-- Records one event through the one implementation that every language shares.
select weirkeeper.record_event(
  type => %(type)s, owner_id => %(owner_id)s, subject => %(subject)s,
  data => %(data)s::jsonb, trace => %(trace)s)::text
