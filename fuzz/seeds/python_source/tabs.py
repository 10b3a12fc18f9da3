def f():
	if 1:
		x = 'a\'#' # "
	else: pass
y = 1
