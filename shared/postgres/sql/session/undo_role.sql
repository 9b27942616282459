-- Roles that a job took are given back.
set session authorization default
