-- Cursors that outlived their transaction.
close all
