-- Which notes the index has, or knows to be removed, in which version. Index: document_pkey.
select note_id::text, version, path from site.document where note_id = any (%(ids)s)
