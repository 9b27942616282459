-- Resumes a queue or a kind through the one implementation that every language shares.
select weirkeeper.resume(queue => %(queue)s, kind => %(kind)s)
