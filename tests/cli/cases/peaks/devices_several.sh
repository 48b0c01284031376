# A part of several names lists them all, an end of one too; "l4" is no part of "L40".
roofline peaks devices m3 h200 l4 --format csv | cut -d, -f1
