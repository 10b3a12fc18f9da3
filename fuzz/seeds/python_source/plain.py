import os

@one(
  1)
def f(x):
    """three
quotes"""
    def g(): return [1,
2]
    return g

class K:
    async def h(self):
	pass

for i in range(3):
    f(i) \
+ 1
