@
@
(
)\
def ÿ():
 pass