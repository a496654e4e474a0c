SPECS = []
