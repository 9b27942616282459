-- Lets any version replace the documents of an owner, or of everybody; they are found until then.
-- Locks: the rows; a job that writes one of them waits, and then replaces it as it would have.
update site.document set version = 0
where not removed and version > 0
  and (%(owner_id)s::text is null or owner_id = %(owner_id)s::text)
