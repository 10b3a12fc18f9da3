def f(:
  x = """
  def g():
